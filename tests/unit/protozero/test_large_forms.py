"""Text and JSON of many megabytes: time and memory grow linearly with the length.

The memory bound is a number of bytes for each character. It is generous, because reading makes some
copies of its input. The time limits find only quadratic growth.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from stretto.base.errors import ConfigError
from stretto.protos.trace import TracePacket, TrackEvent
from stretto.protozero.json_format import format_json, from_value, parse_json
from stretto.protozero.table import Table
from stretto.protozero.text_format import TextFormatError, format_text, parse_text
from stretto.protozero.text_source import MAX_ERRORS
from tests.support.generated import load, module_of
from tests.support.peak_memory import peak_memory

pytestmark = [pytest.mark.thorough, pytest.mark.once]

Everything: Any = load(
    module_of(Path(__file__).parent / "sample.proto", "stretto_sample_large")[1]
).Everything

SIZE = 21_000_000
BYTES_PER_CHAR = 16
HANG_S = 60

PACKETS = [
    pytest.param(
        lambda: TracePacket(compressed_packets=random.Random(1).randbytes(SIZE)), id="bytes"
    ),
    pytest.param(lambda: packet_named("x" * SIZE), id="one long string"),
    pytest.param(lambda: packet_named('\\"\n\x01' * (SIZE // 4)), id="escapes"),
]


def packet_named(name: str) -> TracePacket:
    return TracePacket(track_event=TrackEvent(name=name))


@contextmanager
def no_hang() -> Iterator[None]:
    start = time.monotonic()
    yield
    assert time.monotonic() - start < HANG_S


@pytest.mark.parametrize("make", PACKETS)
def test_large_packet_is_unchanged_after_writing_and_reading(
    make: Callable[[], TracePacket],
) -> None:
    packet = make()
    for write, read in ((format_text, parse_text), (format_json, parse_json)):
        with peak_memory() as writing:
            text = write(packet)
        assert writing.bytes < BYTES_PER_CHAR * len(text)
        with peak_memory() as reading:
            same = read(text, TracePacket)
        assert reading.bytes < BYTES_PER_CHAR * len(text)
        assert same == packet


@pytest.mark.parametrize(
    ("begin", "part", "count", "end"),
    [
        pytest.param('"', "x", 2_000_000, '"', id="plain"),
        pytest.param('"', r"\001", 500_000, '"', id="octal"),
        pytest.param('"', r"\?\\", 500_000, '"', id="short"),
        pytest.param("", '"" "abc"\n', 20_000, "", id="adjacent"),
        pytest.param("", '"a" # "\n', 20_000, "", id="with comments"),
        pytest.param("", "#\n", 1_000_000, '""', id="behind comments"),
    ],
)
def test_memory_for_literals_is_bounded_per_character(
    begin: str, part: str, count: int, end: str
) -> None:
    literal = begin + part * count + end
    with peak_memory() as peak:
        parse_text(f"a_string: {literal}", Everything)
    assert peak.bytes < BYTES_PER_CHAR * len(literal)


def test_unterminated_literal_needs_little_memory() -> None:
    text = 'a_string: "' + r"\a" * 1_000_000
    with peak_memory() as peak, pytest.raises(TextFormatError, match="doesn't end"):
        parse_text(text, Everything)
    assert peak.bytes < len(text)


def test_number_and_length_of_errors_in_a_long_line_are_bounded() -> None:
    for field in ("a_int31: 1 ", "a_bool: maybe ", f'a_bool: "{"x" * 1000}" '):
        text = field * (SIZE // 10 // len(field))
        with no_hang(), pytest.raises(TextFormatError) as caught:
            parse_text(text, Everything)
        assert str(caught.value).count(" error: ") == MAX_ERRORS
        assert str(caught.value).endswith(f"reading ended after {MAX_ERRORS} errors\n")
        assert len(str(caught.value)) < 10_000 * MAX_ERRORS


@pytest.mark.parametrize(
    ("begin", "character", "end"),
    [
        pytest.param("", "x", "", id="name"),
        pytest.param("a_bool: ", "x", "", id="bool"),
        pytest.param("color: ", "x", "", id="enum"),
        pytest.param("a_double: ", "1", ".1.1", id="double"),
        pytest.param('a_int32: "', "x", '"', id="string"),
    ],
)
def test_long_values_are_truncated_in_text_errors(begin: str, character: str, end: str) -> None:
    text = begin + character * SIZE + end
    with no_hang(), pytest.raises(TextFormatError) as caught:
        parse_text(text, Everything)
    assert len(str(caught.value)) < 10_000


def test_long_integers_are_truncated_to_the_width_of_their_type() -> None:
    assert parse_text(f"a_int32: {'0' * 5000}7", Everything).a_int32 == 7
    assert parse_text(f"a_uint64: -{'9' * 5000}", Everything).a_uint64 == (1 << 64) - 1


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: {"x" * SIZE: 1}, id="name"),
        pytest.param(lambda: {"color": "x" * SIZE}, id="enum"),
        pytest.param(lambda: {"aInt32": "x" * SIZE}, id="integer"),
        pytest.param(lambda: {"aBytes": "%" * SIZE}, id="base64"),
        pytest.param(lambda: {"aBool": [1] * 1_000_000}, id="list"),
        pytest.param(lambda: {"messages": {"1" * SIZE: {}}}, id="key"),
    ],
)
def test_long_values_are_truncated_in_json_errors(make: Callable[[], dict[str, Any]]) -> None:
    value = make()
    with no_hang(), pytest.raises(ConfigError) as caught:
        from_value(value, Everything)
    assert len(str(caught.value)) < 1000


def test_values_nested_below_a_long_map_key_are_read_in_linear_time() -> None:
    key, numbers = "x" * (1 << 20), [1] * 200_000
    value = {"children": {key: {"numbers": numbers}}}
    with no_hang():
        message = from_value(value, nested_maps())
    assert list(message.children[key].numbers) == numbers
    numbers.append("wrong")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"children\['x+\.\.\.'\]\.numbers\[200000\]: expected"):
        from_value(value, nested_maps())


def nested_maps() -> Any:
    fields = "children 1 map:string,message:Node\nnumbers 2 int32 repeated\n"
    return Table(__name__, {"Node": fields}, {}).find("Node")


def test_duplicate_name_among_many_is_found() -> None:
    names = [f'"n{at}": 0' for at in range(200_000)]
    text = "{" + ", ".join([*names, '"last": 1', '"last": 2']) + "}"
    with no_hang(), pytest.raises(ConfigError, match="'last' stands twice"):
        parse_json(text, Everything)
