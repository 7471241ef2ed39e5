"""Bundles: `_native.unmarshal` returns an object of a file; `are_current` checks the sources."""

from __future__ import annotations

import marshal
import os
from pathlib import Path

import pytest

from stretto import _native

THING = ("text", b"bytes", 12345678901234567890, (None, 1.5))


def unmarshal(path: Path, start: int) -> object:
    fd = os.open(path, os.O_RDONLY)
    try:
        return _native.unmarshal(fd, start)
    finally:
        os.close(fd)


@pytest.mark.parametrize("prefix", [b"", b"magic", bytes(4096)])
def test_object_after_a_prefix(tmp_path: Path, prefix: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(prefix + marshal.dumps(THING))
    assert unmarshal(path, len(prefix)) == THING


@pytest.mark.parametrize("start", [-1, 4, 100])
def test_offset_outside_of_the_file(tmp_path: Path, start: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"four")
    with pytest.raises(EOFError, match="a file of 4 bytes has no object at"):
        unmarshal(path, start)


def test_object_that_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(marshal.dumps(THING)[:-1])
    with pytest.raises(EOFError):
        unmarshal(path, 0)


def test_descriptor_that_is_closed() -> None:
    with pytest.raises(OSError, match="Bad file descriptor"):
        _native.unmarshal(1 << 20, 0)


def test_a_module_that_is_no_tuple_of_five_is_an_error(tmp_path: Path) -> None:
    for modules in ((("name", "file"),), ("name",), (("name", "file", False, "size", None),)):
        with pytest.raises(TypeError):
            _native.are_current(str(tmp_path), modules, 0)


def test_a_package_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        _native.are_current(str(tmp_path / "missing"), (), 0)
