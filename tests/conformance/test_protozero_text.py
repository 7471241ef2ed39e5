"""Text configs: Perfetto's config compiler and Stretto's codec read each other's output.

The compiler is that of Perfetto v52. The tests avoid its known differences from the current
dialect: it doesn't join adjacent strings, a `#` doesn't end a number, and its error
messages give columns of the first line that are lower by one.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import assume, given, settings

from stretto.protos.config import TraceConfig
from stretto.protozero.text_format import TextFormatError, format_text, parse_text
from tests.support import oracle
from tests.support.examples import examples
from tests.support.google_classes import perfetto_messages
from tests.support.message_pairs import contents, make, relaxed

REASON = oracle.missing()
pytestmark = [pytest.mark.once, pytest.mark.skipif(REASON is not None, reason=str(REASON))]


class Compiler:
    """Perfetto's config compiler; its C functions write the result into the input buffer."""

    def __init__(self) -> None:
        self._host: Any = oracle.load("trace_processor").Host("trace_config_utils.wasm")
        self._host.main()
        self._buffer = self._host.call("trace_config_utils_buf")

    def _call(self, function: str, data: bytes) -> bytes:
        self._host.wr(self._buffer, b"\1")
        self._host.wr(self._buffer, data + b"\0")
        size = self._host.call(function, len(data))
        answer: bytes = self._host.rd(self._buffer, size + 1)
        return answer

    def to_proto(self, text: str) -> bytes:
        """Compile a config; raises ValueError with the error messages."""
        answer = self._call("trace_config_txt_to_pb", text.encode("utf-8", "surrogateescape"))
        if text and answer[0] != 1:
            raise ValueError(answer[1:].split(b"\0")[0].decode())
        return answer[1:]

    def to_text(self, config: bytes) -> str:
        return self._call("trace_config_pb_to_txt", config)[:-1].decode("utf-8", "surrogateescape")


@pytest.fixture(scope="module")
def compiler() -> Compiler:
    return Compiler()


DESCRIPTOR = perfetto_messages()["perfetto.protos.TraceConfig"].DESCRIPTOR


@settings(relaxed, max_examples=examples(400))
@given(values=contents(DESCRIPTOR))
def test_config_compiler_of_perfetto_reads_text_written_by_stretto(
    compiler: Compiler, values: dict[str, Any]
) -> None:
    config = make(TraceConfig, values)
    text = format_text(config)
    assume(not re.search(r": -?(inf|nan)", text))
    try:
        data = compiler.to_proto(text)
    except ValueError as error:
        # Perfetto's compiler (v52) rejects newer fields and enum values.
        known = re.search(r"No field (named|with name)|Unexpected value .* for enum", str(error))
        assume(known is None)
        raise
    assert TraceConfig.decode(data) == config


@settings(relaxed, max_examples=examples(400))
@given(values=contents(DESCRIPTOR))
def test_stretto_reads_text_written_by_the_config_compiler_of_perfetto(
    compiler: Compiler, values: dict[str, Any]
) -> None:
    config = make(TraceConfig, values)
    text = compiler.to_text(config.encode())
    # Perfetto's compiler (v52) writes newer fields and enum values as numbers.
    assume(not re.search(r"^ *\d+[: ]", text, re.MULTILINE))
    # Perfetto's compiler rounds doubles to six decimals, and writes exponents differently.
    assume(not re.search(r": -?(\d+\.\d|\d+e|inf|nan)", text))
    assert parse_text(text, TraceConfig) == config


@pytest.mark.parametrize(
    "text",
    [
        "duration_ms: -1\n",
        "duration_ms: 4294967297\n",
        "duration_ms: 1.9\n",
        "duration_ms: 99999999999999999999999\n",
        "trace_uuid_msb: -5\n",
        "trace_uuid_msb: 18446744073709551615\n",
        "duration_ms 5\n",
        "buffers : { size_kb : 5 ; } ; duration_ms: 6;\n",
        "# c\nbuffers # d\n { # e\n size_kb # f\n : # g\n 5 # h\n } # i\n",
        'unique_session_name: "\\a\\b\\f\\n\\r\\t\\v\\?\\\'\\"\\\\\\101\\377"\n',
        'unique_session_name: "two\nlines # no comment"\n',
        "lockdown_mode: LOCKDOWN_SET# c\n",
        "write_into_file: true;\n",
        "trigger_config { } \n",
    ],
)
def test_compiler_and_stretto_read_the_same_config(compiler: Compiler, text: str) -> None:
    assert TraceConfig.decode(compiler.to_proto(text)) == parse_text(text, TraceConfig)


@pytest.mark.parametrize(
    "text",
    [
        "duration_ms: soon",
        "nothing: 5\n duration_ms: soon\nwrite_into_file: 1",
        "nothing { }",
        "buffers { nothing: 1 size_kb: x ",
        "buffers: 5\nduration_ms { }\n nothing: 1",
        "duration_ms: 1\nduration_ms: 2\n",
        "}",
        "buffers {\n size_kb: 5\n",
        "duration_ms: 0x10\n",
        "duration_ms: 1e5\n",
        "activate_triggers: [1]\n",
        "duration_ms: 1, x: 2\n",
        "unique_session_name: 'a'\n",
        "buffers < >\n",
        ";",
        'unique_session_name: "\\x41"\n',
        'unique_session_name: "\\400"\n',
        'unique_session_name: "\\18"\n',
        "lockdown_mode: NOTHING\n",
        "lockdown_mode: 1\n",
        "write_into_file: yes\n",
        "  write_into_file: \n",
    ],
)
def test_compiler_and_stretto_report_errors_at_the_same_place(
    compiler: Compiler, text: str
) -> None:
    text = f"\n{text}\n"
    with pytest.raises(ValueError, match="error") as theirs:
        compiler.to_proto(text)
    with pytest.raises(TextFormatError) as ours:
        parse_text(text, TraceConfig)
    assert places(str(ours.value)) == places(str(theirs.value))


def places(errors: str) -> list[tuple[str, int]]:
    """Return (row and column, marker length) of each error; a marker has at least length 1."""
    lines = errors.split("\n")
    return [
        (line.split(" ")[0], len("".join(lines[at + 2 : at + 3]).strip()) or 1)
        for at, line in enumerate(lines)
        if re.match(r"-:\d+:\d+ error: ", line)
    ]
