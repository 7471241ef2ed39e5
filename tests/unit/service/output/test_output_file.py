from __future__ import annotations

import errno
import os
import stat

import pytest

from stretto.base.errors import SessionError, TransportError
from stretto.service.output import output_file
from stretto.service.output.output_file import OutputFile, create_output_file
from stretto.service.output.packet_encoder import framed
from tests.support.descriptors import expect_new_descriptors, open_descriptors

PACKETS = framed(b"a" * 10) + framed(b"b" * 20)


class TestCreateOutputFile:
    def test_new_file_is_readable_only_by_its_owner(self, tmp_path):
        fd = create_output_file(str(tmp_path / "t"))
        assert stat.S_IMODE(os.fstat(fd).st_mode) == 0o600
        assert not os.get_inheritable(fd)
        os.close(fd)

    def test_existing_file_is_not_overwritten(self, tmp_path):
        path = tmp_path / "t"
        path.write_bytes(b"precious")
        with pytest.raises(SessionError, match="exists already"):
            create_output_file(str(path))
        assert path.read_bytes() == b"precious"

    def test_symbolic_link_is_not_followed(self, tmp_path):
        (tmp_path / "link").symlink_to(tmp_path / "target")
        with pytest.raises(SessionError):
            create_output_file(str(tmp_path / "link"))
        assert not (tmp_path / "target").exists()

    @pytest.mark.parametrize("path", ["/nonexistent/folder/t", "nul\0byte"])
    def test_path_that_cannot_be_created_is_an_error(self, path):
        with pytest.raises(SessionError, match="can't be created"):
            create_output_file(path)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trace"


def open_file(path):
    return OutputFile(os.open(path, os.O_RDWR | os.O_CREAT))


class TestWritePackets:
    def test_file_contains_all_written_packets_after_close(self, path):
        file = open_file(path)
        file.write(PACKETS)
        file.write(PACKETS)
        file.sync()
        file.close()
        file.close()
        assert path.read_bytes() == PACKETS * 2
        assert file.bytes_written == len(PACKETS) * 2
        assert file.closed

    def test_short_writes_are_continued(self, path, monkeypatch):
        real = os.write
        monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:7]))
        open_file(path).write(PACKETS)
        assert path.read_bytes() == PACKETS

    @pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
    def test_full_disk_keeps_whole_packets_and_counts_lost_bytes(self, path, monkeypatch, code):
        real, left = os.write, [len(PACKETS) + 20]

        def write(fd, data):
            if not left[0]:
                raise OSError(code, os.strerror(code))
            done = real(fd, data[: left[0]])
            left[0] -= done
            return done

        file = open_file(path)
        monkeypatch.setattr(os, "write", write)
        file.write(PACKETS)
        with pytest.raises(TransportError, match=r"46 bytes are in it, 22 .* are lost") as error:
            file.write(PACKETS)
        assert os.strerror(code) in str(error.value)
        assert path.read_bytes() == PACKETS + PACKETS[:12]
        assert file.closed
        assert file.bytes_written == 46

    def test_file_on_a_full_device_is_closed_with_an_error(self):
        file = OutputFile(os.open("/dev/full", os.O_WRONLY))
        with pytest.raises(TransportError, match="No space left"):
            file.write(PACKETS)
        assert file.closed

    def test_pipe_without_reader_is_an_error(self):
        reader, writer = os.pipe()
        file = OutputFile(writer)
        file.write(PACKETS)
        os.close(reader)
        with pytest.raises(TransportError, match="Broken pipe"):
            file.write(PACKETS)
        assert file.bytes_written == len(PACKETS)

    def test_full_non_blocking_pipe_is_an_error_after_the_timeout(self, monkeypatch):
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        file = OutputFile(writer)
        monkeypatch.setattr(output_file, "_PIPE_TIMEOUT_MS", 1)
        file.write(framed(b"x" * 4096) * 15)
        with pytest.raises(TransportError, match="doesn't read"):
            file.write(framed(b"x" * 70_000))
        os.close(reader)

    def test_sync_ignores_pipes_and_reports_errors_of_files(self, path, monkeypatch):
        reader, writer = os.pipe()
        OutputFile(writer).sync()
        os.close(reader)
        file = open_file(path)

        def fail(fd):
            raise OSError(errno.EIO, "Input/output error")

        monkeypatch.setattr(os, "fdatasync", fail)
        with pytest.raises(TransportError, match="may be incomplete"):
            file.sync()
        assert file.closed


class TestCopyOutputFile:
    def test_copy_contains_the_file_up_to_the_given_size(self, path):
        path.write_bytes(b"before ")
        file = OutputFile(os.open(path, os.O_WRONLY | os.O_APPEND))
        file.write(PACKETS)
        copy = file.copy(file.bytes_written)
        file.write(PACKETS)
        file.close()
        assert b"".join(copy) == b"before " + PACKETS

    @pytest.mark.parametrize("ending", ["read", "closed", "dropped"])
    def test_finished_copy_leaves_no_descriptor_open(self, path, ending):
        file = open_file(path)
        file.write(PACKETS)
        before = open_descriptors()
        copy = file.copy(file.bytes_written)
        if ending == "read":
            assert b"".join(copy) == PACKETS
        elif ending == "closed":
            copy.close()
        del copy
        expect_new_descriptors(before, 0)

    def test_copy_of_a_pipe_is_refused(self):
        reader, writer = os.pipe()
        file = OutputFile(writer)
        with pytest.raises(OSError, match="Invalid argument"):
            file.copy(0)
        file.close()
        os.close(reader)
