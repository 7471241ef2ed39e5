from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from stretto import _native
from stretto.base.errors import ConfigError
from stretto.protozero.filter.bytecode import encode_words
from stretto.protozero.filter.load import load_filter
from stretto.protozero.filter.strings import MATCH_REDACT_GROUPS, StringFilter, StringRule

# Message 0 has field 1 (message 1) and field 2 (a string to filter); message 1 has field 3
# (simple) and field 4 (a string of semantic type 7).
CODE = encode_words([1 << 3 | 3, 1, 2 << 3 | 4, 0, 3 << 3 | 1, 4 << 3 | 5, 7, 0])


def test_string_rules_rewrite_strings() -> None:
    strings = StringFilter([StringRule(MATCH_REDACT_GROUPS, "(.*)", semantic_types=[7])])
    loaded = load_filter(CODE, strings=strings)
    assert loaded.filter(b"\x12\x02hi\x0a\x04\x22\x02hi") == b"\x12\x02hi\x0a\x04\x22\x02P6"


def test_strings_are_unchanged_without_rules() -> None:
    assert load_filter(CODE, strings=StringFilter()).filter(b"\x12\x02hi") == b"\x12\x02hi"


def test_filter_can_start_at_a_nested_message() -> None:
    loaded = load_filter(CODE, root=[1])
    assert loaded.filter(b"\x18\x07\x12\x02hi") == b"\x18\x07"
    assert loaded.messages == 2


def test_filter_of_a_malformed_message_returns_none() -> None:
    assert load_filter(CODE).filter(b"\x18") is None


@pytest.mark.parametrize(
    ("code", "overlay", "root", "complaint"),
    [
        (b"", b"", (), "it is empty"),
        (b"\x80", b"", (), "varint"),
        (encode_words([1 << 3 | 1]), b"", (), "no end"),
        (CODE, b"\x00", (), "checksum"),
        (CODE, encode_words([9, 1 << 3 | 1, 0]), (), "a message that it doesn't have"),
        (CODE, b"", (2,), r"no message at the path \(2,\)"),
        (CODE, b"", (1, 3), r"no message at the path \(1, 3\)"),
        (CODE, b"", (1,) * 17, "no message at the path"),
    ],
)
def test_invalid_filters_are_refused(
    code: bytes, overlay: bytes, root: tuple[int, ...], complaint: str
) -> None:
    with pytest.raises(ConfigError, match=complaint):
        load_filter(code, overlay, root=root)


class TestNativeFilter:
    """The native filter itself, without `load_filter`."""

    def test_arguments_of_a_wrong_type_are_refused(self) -> None:
        make: Any = _native.MessageFilter
        for arguments in [(), (1,), (CODE, "x"), (CODE, b"", 5)]:
            with pytest.raises(TypeError):
                make(*arguments)
        loaded = make(CODE)
        for call in (loaded.filter, loaded.filter_trace, loaded.set_root):
            with pytest.raises(TypeError):
                call(5)
        with pytest.raises(TypeError):
            loaded.set_root(["x"])
        with pytest.raises(ValueError, match="a field"):
            loaded.set_root([0])

    def test_any_bytes_like_object_is_accepted(self) -> None:
        loaded = _native.MessageFilter(bytearray(CODE), memoryview(b""))
        assert loaded.filter(bytearray(b"\x12\x02hi")) == b"\x12\x02hi"
        assert loaded.filter(memoryview(b"")) == b""

    def test_exception_of_the_string_filter_is_raised(self) -> None:
        loaded = _native.MessageFilter(CODE, b"", lambda _text, _type: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            loaded.filter(b"\x12\x02hi")
        with pytest.raises(ZeroDivisionError):
            loaded.filter_trace(b"\x0a\x04\x12\x02hi")

    @pytest.mark.parametrize("result", [b"", b"x", b"xyz", "hi", 5])
    def test_invalid_result_of_the_string_filter_is_an_error(self, result: Any) -> None:
        loaded = _native.MessageFilter(CODE, b"", lambda *_: result)
        with pytest.raises(ValueError, match="the size that it was given"):
            loaded.filter(b"\x12\x02hi")

    def test_callback_for_strings_can_call_another_message_filter(self) -> None:
        inner = _native.MessageFilter(CODE, b"", lambda text, _: text.upper())

        def nested(text: bytes, _type: int) -> bytes | None:
            return inner.filter(text)

        outer = _native.MessageFilter(CODE, b"", nested)
        assert outer.filter(b"\x12\x04\x12\x02hi\x12\x02\x12\x00") == (
            b"\x12\x04\x12\x02HI\x12\x02\x12\x00"
        )

    def test_filter_trace_returns_packets_and_counts(self) -> None:
        loaded = _native.MessageFilter(CODE)
        loaded.set_root([1])
        trace = b"\x0a\x04\x18\x07\x10\x01" + b"\x0a\x01\x18" + b"\x0a\x02\x10\x01"
        assert loaded.filter_trace(trace) == (b"\x0a\x02\x18\x07\x0a\x00\x0a\x00", 3, 1, 7, 2)
        assert loaded.filter_trace(b"") == (b"", 0, 0, 0, 0)
        for torn in (trace[:-1], b"\x12" + trace[1:]):
            with pytest.raises(ValueError, match="whole packets"):
                loaded.filter_trace(torn)

    def test_large_trace_is_filtered(self) -> None:
        """Large traces are filtered without the GIL."""
        loaded = _native.MessageFilter(CODE)
        loaded.set_root([1])
        count = 100_000
        trace, packets, *_ = loaded.filter_trace(b"\x0a\x04\x18\x07\x10\x01" * count)
        assert packets == count
        assert trace == b"\x0a\x02\x18\x07" * count

    def test_reference_cycle_through_the_filter_is_collected(self) -> None:
        class Rules:
            loaded: _native.MessageFilter

            def __call__(self, _text: bytes, _type: int) -> None: ...

        rules = Rules()
        rules.loaded = _native.MessageFilter(CODE, b"", rules)
        gone = weakref.ref(rules)
        del rules
        gc.collect()
        assert gone() is None
