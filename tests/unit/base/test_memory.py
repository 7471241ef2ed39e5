"""Sealed shared memory."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import resource
import tempfile
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from stretto.base.errors import TransportError
from stretto.base.memory import (
    REQUIRED_SEALS,
    checked_memfd_size,
    create_sealed_memfd,
    memfd_size_limit,
)
from tests.support.descriptors import expect_new_descriptors, open_descriptors


@pytest.fixture
def fd() -> Iterator[int]:
    fd = create_sealed_memfd(8192)
    yield fd
    os.close(fd)


class TestCreateSealedMemory:
    def test_memory_is_zeroed_shared_and_named(self, fd: int) -> None:
        with mmap.mmap(fd, 8192) as one, mmap.mmap(fd, 8192) as other:
            assert one[:] == bytes(8192)
            one[5] = 7
            assert other[5] == 7
        assert "perfetto_shmem" in os.readlink(f"/proc/self/fd/{fd}")

    def test_memory_may_be_smaller_than_a_page(self) -> None:
        fd = create_sealed_memfd(5)
        assert os.fstat(fd).st_size == 5
        os.close(fd)

    @pytest.mark.parametrize("size", [4096, 16384])
    def test_memory_size_cannot_be_changed(self, fd: int, size: int) -> None:
        with pytest.raises(PermissionError):
            os.ftruncate(fd, size)

    def test_memory_accepts_no_further_seals(self, fd: int) -> None:
        with pytest.raises(PermissionError):
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)

    def test_memory_descriptor_is_not_inherited(self, fd: int) -> None:
        assert not os.get_inheritable(fd)

    @pytest.mark.parametrize("size", [0, -1])
    def test_memory_of_size_zero_is_refused(self, size: int) -> None:
        with pytest.raises(TransportError, match="at least 1"):
            create_sealed_memfd(size)

    def test_failed_creation_leaves_no_descriptor(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(fd: int, size: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        before = open_descriptors()
        monkeypatch.setattr(os, "ftruncate", refuse)
        with pytest.raises(TransportError, match="lower the size"):
            create_sealed_memfd(4096)
        expect_new_descriptors(before, 0)


class TestCheckOfReceivedMemory:
    def test_sealed_memory_is_accepted(self, fd: int) -> None:
        assert checked_memfd_size(fd) == 8192

    @pytest.mark.parametrize("seal", [fcntl.F_SEAL_SHRINK, fcntl.F_SEAL_GROW, fcntl.F_SEAL_SEAL])
    def test_memory_without_one_of_the_seals_is_refused(self, seal: int) -> None:
        fd = os.memfd_create("test", os.MFD_ALLOW_SEALING)
        os.ftruncate(fd, 4096)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, REQUIRED_SEALS & ~seal)
        with pytest.raises(TransportError, match="isn't sealed"):
            checked_memfd_size(fd)
        os.close(fd)

    def test_regular_file_is_refused_as_memory(self) -> None:
        with tempfile.TemporaryFile(dir="/var/tmp") as file:
            file.truncate(4096)
            with pytest.raises(TransportError):
                checked_memfd_size(file.fileno())

    def test_pipe_is_refused_as_memory(self) -> None:
        ends = os.pipe()
        with pytest.raises(TransportError, match="a memfd"):
            checked_memfd_size(ends[0])
        for end in ends:
            os.close(end)

    @pytest.mark.parametrize("page", [4096, 16384, 65536])
    def test_pages_of_each_regular_size_are_accepted(
        self, monkeypatch: pytest.MonkeyPatch, page: int
    ) -> None:
        """The kernel's pages may be larger than the memory; the size is not rounded up to pages."""
        fd = create_sealed_memfd(5 * 4096)
        status = SimpleNamespace(st_blksize=page, st_size=os.fstat(fd).st_size)
        monkeypatch.setattr(os, "fstat", lambda _fd: status)
        assert checked_memfd_size(fd) == 5 * 4096
        os.close(fd)

    def test_memory_of_huge_pages_is_refused(self) -> None:
        try:
            flags = os.MFD_ALLOW_SEALING | os.MFD_HUGETLB
            fd = os.memfd_create("test", flags)
        except OSError as error:
            pytest.skip(f"no huge pages here: {error}")
        os.ftruncate(fd, 2 << 20)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, REQUIRED_SEALS)
        with pytest.raises(TransportError, match="huge pages"):
            checked_memfd_size(fd)
        os.close(fd)

    def test_memory_above_the_limit_is_refused(self, fd: int) -> None:
        with pytest.raises(TransportError, match="1 to 4096"):
            checked_memfd_size(fd, 4096)

    def test_empty_memory_is_refused(self) -> None:
        fd = os.memfd_create("test", os.MFD_ALLOW_SEALING)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, REQUIRED_SEALS)
        with pytest.raises(TransportError, match="0 bytes"):
            checked_memfd_size(fd)
        os.close(fd)


class TestFileSizeLimit:
    """RLIMIT_FSIZE also applies to memfds."""

    @pytest.fixture(autouse=True)
    def limits(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Replace the file size limits by fakes, because root could raise the real hard limit."""
        self.limits = (8192, 65536)

        def set_limits(_which: int, limits: tuple[int, int]) -> None:
            if limits[1] != 65536:
                raise ValueError("not allowed to raise maximum limit")
            self.limits = limits

        monkeypatch.setattr(resource, "getrlimit", lambda _which: self.limits)
        monkeypatch.setattr(resource, "setrlimit", set_limits)

    def test_file_size_limit_is_raised_up_to_the_hard_limit(self) -> None:
        fd = create_sealed_memfd(65536)
        assert os.fstat(fd).st_size == 65536
        os.close(fd)
        assert self.limits == (8192, 65536)

    def test_error_names_the_file_size_limit(self) -> None:
        with pytest.raises(TransportError, match="ulimit -f"):
            create_sealed_memfd(65537)
        assert self.limits == (8192, 65536)
        assert memfd_size_limit(1 << 20) == 65536
        assert memfd_size_limit(4096) == 4096
