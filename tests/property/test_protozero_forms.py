"""google.protobuf and Stretto read each other's text and JSON forms of every message."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.protobuf import json_format as google_json
from google.protobuf import text_format as google_text
from hypothesis import given
from hypothesis import strategies as st

from stretto.base.errors import ConfigError
from stretto.protozero.json_format import format_json, parse_json, to_value
from stretto.protozero.text_format import TextFormatError, format_text, parse_text
from tests.support.message_pairs import Pair, all_pairs, contents, extreme, fill, make, relaxed

PAIRS = all_pairs()


def check_text(pair: Pair, values: dict[str, Any], *, theirs_to_ours: bool) -> None:
    ours, theirs = make(pair[0], values), fill(pair[1](), values)
    text = format_text(ours)
    assert parse_text(text, pair[0]) == ours
    assert google_text.Parse(text, pair[1]()) == theirs
    if theirs_to_ours:
        for as_utf8 in (False, True):
            text = google_text.MessageToString(theirs, as_utf8=as_utf8)
            assert parse_text(text, pair[0]) == ours


def check_json(pair: Pair, values: dict[str, Any]) -> None:
    ours, theirs = make(pair[0], values), fill(pair[1](), values)
    text = format_json(ours)
    assert parse_json(text, pair[0]) == ours
    assert google_json.Parse(text, pair[1]()) == theirs
    assert parse_json(google_json.MessageToJson(theirs), pair[0]) == ours
    named = format_json(ours, proto_names=True)
    assert parse_json(named, pair[0]) == ours
    same = google_json.MessageToDict(theirs)
    if "3.4028235e+38" in repr(same):
        return  # google.protobuf rounds the largest float up, and then refuses the result
    assert to_value(ours) == same
    assert json.loads(named) == google_json.MessageToDict(theirs, preserving_proto_field_name=True)


@pytest.mark.thorough
@pytest.mark.once
def test_extreme_values_of_every_field_are_equal_in_text_and_json() -> None:
    for pair in PAIRS:
        for field in pair[1].DESCRIPTOR.fields:
            for which in (0, 1):
                values = {field.name: extreme(field, which)}
                # Google writes exponents, which Perfetto's text dialect doesn't have.
                check_text(
                    pair,
                    values,
                    theirs_to_ours="e-" not in repr(values).lower()
                    and "e+" not in repr(values).lower(),
                )
                check_json(pair, values)


@relaxed
@given(pair=st.sampled_from(PAIRS), data=st.data())
def test_random_messages_are_equal_in_text_and_json(pair: Pair, data: st.DataObject) -> None:
    values = data.draw(contents(pair[1].DESCRIPTOR))
    check_text(pair, values, theirs_to_ours=False)
    check_json(pair, values)


_WORDS = [
    *("buffers", "size_kb", "data_sources", "config", "name", "duration_ms", "lockdown_mode"),
    *("RING_BUFFER", "LOCKDOWN_SET", "true", ":", "{", "}", ";", '"', '"a"', "\\", "# c", "\n"),
    *("1", "-5", "0.5", "[a.b]", "'", "<", ",", "[", "\udcff", "x"),
]


@relaxed
@given(st.lists(st.sampled_from(_WORDS), max_size=30).map(" ".join) | st.text(max_size=60))
def test_any_text_is_read_or_refused_with_its_position(text: str) -> None:
    config = next(ours for ours, _ in PAIRS if ours.__qualname__ == "TraceConfig")
    try:
        message = parse_text(text, config, "file")
    except TextFormatError as error:
        lines = str(error).split("\n")
        row, column = (int(part) for part in lines[0].split(" error: ")[0].split(":")[1:])
        assert 1 <= row <= text.count("\n") + 1
        assert 1 <= column <= len(text.split("\n")[row - 1]) + 1
        assert lines[2].index("^") == column - 1
        return
    assert parse_text(format_text(message), config) == message


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["buffers", "sizeKb", "dataSources", "config", "name", "durationMs"])
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@relaxed
@given(_JSON)
def test_any_json_is_read_or_refused_with_an_error(value: Any) -> None:
    config = next(ours for ours, _ in PAIRS if ours.__qualname__ == "TraceConfig")
    text = json.dumps(value)
    try:
        message = parse_json(text, config)
    except ConfigError:
        return  # google.protobuf also accepts a list in place of an object, which Stretto refuses
    theirs = google_json.Parse(text, dict(PAIRS)[config]())
    assert message == config.decode(theirs.SerializeToString())
