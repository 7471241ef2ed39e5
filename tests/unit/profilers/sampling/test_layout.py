"""Layouts: of this interpreter, of all supported versions, and of unknown ones."""

from __future__ import annotations

import struct
import sys

import pytest

from stretto.profilers.sampling.layout import OFFSETS_COOKIE, SUPPORTED, layout_of

VERSIONS_WITH_TABLE = [version for version in SUPPORTED if version >= (3, 13)]


def table(version: tuple[int, int], free_threaded: int = 0) -> bytes:
    """Return a table of offsets: each entry is its own index, and the first index is 3."""
    number = version[0] << 24 | version[1] << 16
    head = OFFSETS_COOKIE + struct.pack("<QQ", number, free_threaded)
    return head + struct.pack("<110Q", *range(3, 113))


def test_this_version_is_supported() -> None:
    assert sys.version_info[:2] in SUPPORTED


@pytest.mark.parametrize("version", SUPPORTED)
def test_layout_has_the_same_names_in_each_version(version: tuple[int, int]) -> None:
    needed = {
        name
        for name in layout_of((3, 12), b"")
        if not name.startswith(("gil", "interpreter_ceval", "frame_stack"))
    }
    assert needed <= layout_of(version, table(version)).keys()


def test_offsets_of_3_13_are_read_in_their_order() -> None:
    layout = layout_of((3, 13), table((3, 13)))
    assert layout["runtime_interpreters_head"] == 5
    assert layout["interpreter_threads_head"] == 9
    assert layout["gil_holder"] == 18 - 15
    assert layout["thread_frame"] == 23
    assert layout["frame_code"] == 30


@pytest.mark.parametrize("version", VERSIONS_WITH_TABLE)
def test_free_threaded_build_is_refused(version: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="free-threaded"):
        layout_of(version, table(version, free_threaded=1))


@pytest.mark.parametrize("version", VERSIONS_WITH_TABLE)
def test_table_of_another_version_is_refused(version: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="another version"):
        layout_of(version, table((3, 12)))
    with pytest.raises(ValueError, match="no table"):
        layout_of(version, bytes(1024))


def test_unknown_version_is_refused() -> None:
    with pytest.raises(ValueError, match=r"3\.10 is not supported"):
        layout_of((3, 10), b"")
