"""Compressed and archived traces are unpacked; damaged ones are read up to the damage."""

from __future__ import annotations

import gzip
import io
import sys
import tarfile
import zipfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from stretto.analysis.trace_summary import summarize
from stretto.analysis.trace_tables import import_trace, statistics
from stretto.analysis.unpacking import unpack, unpack_files
from stretto.base.errors import DecodeError

CONTENT = b"content " * 10_000
JSON = b'{"traceEvents": [%s]}' % b",".join(
    b'{"ph": "X", "ts": %d, "dur": 1, "pid": 1, "tid": 1, "name": "call %d"}' % (10 * i, i * i)
    for i in range(20_000)
)


def zipped(*names: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, CONTENT)
    return file.getvalue()


def tarred(content: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        folder = tarfile.TarInfo("folder")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        member = tarfile.TarInfo("folder/trace")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


def archive_of(files: dict[str, bytes], kind: str) -> bytes:
    file = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(file, "w") as zipped:
            for name, data in files.items():
                zipped.writestr(name, data)
        return file.getvalue()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return file.getvalue()


def unpacked(data: bytes, damage: list[str] | None = None) -> bytes:
    reasons: list[str] = []
    with ExitStack() as stack:
        content = unpack(io.BufferedReader(io.BytesIO(data)), stack, reasons.append).read()
    if damage is None:
        assert not reasons
    else:
        damage += reasons
    return content


@pytest.mark.parametrize(
    "data",
    [
        CONTENT,
        gzip.compress(CONTENT),
        zipped("trace"),
        tarred(gzip.compress(CONTENT)),
        gzip.compress(tarred(CONTENT)),
    ],
    ids=["plain", "gzip", "zip", "gzip in tar", "tar in gzip"],
)
def test_layers_are_removed(data: bytes) -> None:
    assert unpacked(data) == CONTENT


def test_zip_is_read_from_a_file_that_is_not_seekable() -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

    with ExitStack() as stack:
        file = io.BufferedReader(Pipe(zipped("trace")))
        assert unpack(file, stack, pytest.fail).read() == CONTENT


def test_zstd_is_read_or_the_error_says_what_is_missing() -> None:
    if sys.version_info < (3, 14):
        with pytest.raises(DecodeError, match="compressed by zstd"):
            unpacked(b"\x28\xb5\x2f\xfd")
        return
    from compression import zstd

    assert unpacked(zstd.compress(CONTENT)) == CONTENT
    damage: list[str] = []
    assert CONTENT.startswith(unpacked(zstd.compress(CONTENT)[:-9], damage))
    assert damage


def test_archive_of_several_files_is_refused_with_their_names() -> None:
    with pytest.raises(DecodeError, match="zip archive of 2 files, not of one: a, b"):
        unpacked(zipped("a", "b"))


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_files_of_an_archive_are_packets_then_compressed_files_then_others(kind: str) -> None:
    packed = gzip.compress(b"\npacked")
    inner = archive_of({"y": b"\ny", "x": b"\nx"}, "tar")
    files = {"d": b"[]", "c": packed, "b": b"\nb", "folder/a": b"\na", "e": inner}
    data = archive_of(files, kind)
    found = [
        (name, file.read())
        for name, file in unpack_files(io.BufferedReader(io.BytesIO(data)), pytest.fail)
    ]
    assert found == [
        ("b", b"\nb"),
        ("folder/a", b"\na"),
        ("c", b"\npacked"),
        ("d", b"[]"),
        ("e/x", b"\nx"),
        ("e/y", b"\ny"),
    ]


def json_of(name: str) -> bytes:
    return b'[{"ph": "X", "ts": 1, "dur": 1, "pid": 1, "tid": 1, "name": "%s"}]' % name.encode()


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_files_of_an_archive_become_one_trace(kind: str) -> None:
    data = gzip.compress(archive_of({name: json_of(name) for name in ("one", "two")}, kind))
    importer = import_trace(data)
    assert [row[5] for row in importer.rows("slice")[1]] == ["one", "two"]
    assert statistics(importer)["stretto_cut_off"] == 0


def test_tar_archive_that_is_cut_off_is_read_up_to_its_end() -> None:
    data = archive_of({"one": json_of("one"), "two": JSON}, "tar")
    importer = import_trace(data[: len(data) - 20_480])
    assert len(importer.rows("slice")[1]) > 1000
    assert statistics(importer)["stretto_cut_off"] == 1


def test_file_of_an_archive_that_is_no_trace_is_named() -> None:
    with pytest.raises(DecodeError, match=r"notes\.txt: it is no trace"):
        import_trace(archive_of({"notes.txt": b"buy milk", "x": json_of("x")}, "zip"))


def test_damaged_archive_is_refused() -> None:
    with pytest.raises(DecodeError, match="zip archive can't be read"):
        unpacked(zipped("a")[:20])


class Stream(io.BytesIO):
    """A file that can't seek: the sizes of an archive's files follow their data."""

    def seekable(self) -> bool:
        return False

    def seek(self, *_: int) -> int:
        raise io.UnsupportedOperation

    def tell(self) -> int:
        raise io.UnsupportedOperation


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("target", [io.BytesIO, Stream], ids=["sizes first", "sizes follow"])
def test_zip_archive_that_is_cut_off_is_read_up_to_its_end(
    method: int, target: type[io.BytesIO]
) -> None:
    file = target()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("one", json_of("one"))
        archive.writestr("two", JSON)
    data = file.getvalue()
    if method == zipfile.ZIP_STORED and target is Stream:
        data = data[data.index(b"PK\x03\x04", 4) :]  # Where the first file ends isn't known.
    importer = import_trace(data[: len(data) - 2000])
    names = {row[5] for row in importer.rows("slice")[1]}
    assert len(importer.rows("slice")[1]) > 1000
    assert ("one" in names) == (method == zipfile.ZIP_DEFLATED or target is not Stream)
    assert statistics(importer)["stretto_cut_off"] == 1


def test_zip_archive_without_its_directory_has_all_files() -> None:
    data = archive_of({"one": json_of("one"), "two": json_of("two")}, "zip")
    importer = import_trace(data[: data.index(b"PK\x01\x02")])
    assert [row[5] for row in importer.rows("slice")[1]] == ["one", "two"]
    assert statistics(importer)["stretto_cut_off"] == 1


def test_gzip_file_that_is_cut_off_is_read_up_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "trace.gz"
    compressed = gzip.compress(JSON)
    path.write_bytes(compressed[: len(compressed) // 2])
    importer = import_trace(path)
    assert statistics(importer)["stretto_cut_off"] == 1
    names = [row[5] for row in importer.rows("slice")[1]]
    assert 5_000 < len(names) < 15_000
    assert names == [f"call {i * i}" for i in range(len(names))]
    assert any("cut off" in text for _, text in summarize(importer).unread)


def test_json_object_without_its_end_is_cut_off() -> None:
    assert statistics(import_trace(JSON))["stretto_cut_off"] == 0
    whole = statistics(import_trace(JSON[:-1]))
    assert (whole["stretto_cut_off"], whole["stretto_unread_bytes"]) == (1, 0)
    cut = statistics(import_trace(JSON[:-10]))
    assert cut["stretto_cut_off"] == 1
    assert cut["stretto_unread_bytes"] > 0


def test_watch_function_is_not_called_for_json() -> None:
    import_trace(JSON, watch=pytest.fail)
