"""Shared memory with a fixed size.

If a mapped file is truncated, access to it raises SIGBUS. So memory that is sent to another process
is a memfd whose size is sealed, and memory from a peer is accepted only if its size is sealed.

The kernel applies RLIMIT_FSIZE (`ulimit -f`) to memfds, too. The limit is meant for files on disks,
so it is raised, where permitted, while memory is allocated.
"""

from __future__ import annotations

import errno
import fcntl
import os
import resource

from stretto.base.errors import TransportError

MEMFD_NAME = "perfetto_shmem"
REQUIRED_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
MAX_SHM_BYTES = 32 * 1024 * 1024
"""The service's limit for one producer's shared memory, in bytes.

Source: docs/formats/shared_memory.md, "Buffer geometry".
"""
MAX_BLOCK_BYTES = 65536
"""The largest regular page size of common kernels; larger pages come from a reserved pool."""


def create_sealed_memfd(size_bytes: int, name: str = MEMFD_NAME) -> int:
    """Allocate zeroed shared memory of a fixed size.

    Args:
        size_bytes: The size in bytes, at least 1.
        name: The name that /proc/self/maps and /proc/self/fd show.

    Returns:
        The descriptor (close-on-exec), owned by the caller.

    Raises:
        TransportError: The kernel doesn't support memfds, or has no memory.
    """
    if size_bytes < 1:
        raise TransportError(f"shared memory of {size_bytes} bytes: ask for at least 1")
    fd = -1
    try:
        fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        _resize(fd, size_bytes)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, REQUIRED_SEALS)
    except OSError as error:
        if fd >= 0:
            os.close(fd)
        raise TransportError(
            f"no shared memory of {size_bytes} bytes: {error.strerror}; {_advice(error)}"
        ) from error
    return fd


def memfd_size_limit(size_bytes: int) -> int:
    """Return `size_bytes`, or the hard limit of RLIMIT_FSIZE if that is less."""
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    return size_bytes if hard == resource.RLIM_INFINITY else min(size_bytes, hard)


def _resize(fd: int, size_bytes: int) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    # The limit is checked first: exceeding it would send SIGXFSZ.
    if limits[0] == resource.RLIM_INFINITY or size_bytes <= limits[0]:
        os.ftruncate(fd, size_bytes)
        return
    try:
        _lift_limit(size_bytes, limits[1])
        os.ftruncate(fd, size_bytes)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def _lift_limit(size_bytes: int, hard: int) -> None:
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    except ValueError as error:
        # Only root may raise the hard limit; the soft limit is raised up to the hard one.
        if size_bytes > hard != resource.RLIM_INFINITY:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG)) from error
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))


def _advice(error: OSError) -> str:
    if error.errno == errno.EFBIG:
        return "`ulimit -f` is too low"
    if error.errno in (errno.EPERM, errno.ENOSYS):
        return "this system refuses memfd_create: a process can only record itself"
    return "lower the size, or free memory and descriptors"


def checked_memfd_size(fd: int, max_bytes: int = MAX_SHM_BYTES) -> int:
    """Return the size of a peer's shared memory, after checking that it can't change.

    Args:
        fd: The descriptor of the memory; owned by the caller, and not closed.
        max_bytes: The largest accepted size.

    Raises:
        TransportError: The memory isn't a memfd, isn't sealed, is in huge pages, is empty or too
            large.
    """
    try:
        seals = fcntl.fcntl(fd, fcntl.F_GET_SEALS)
    except OSError as error:
        raise TransportError(
            "the peer's descriptor isn't a memfd: shared memory must come from memfd_create"
        ) from error
    if seals & REQUIRED_SEALS != REQUIRED_SEALS:
        raise TransportError(
            f"the peer's shared memory isn't sealed (seals {seals:#x}): "
            "it must carry F_SEAL_SHRINK, F_SEAL_GROW and F_SEAL_SEAL"
        )
    status = os.fstat(fd)
    if status.st_blksize > MAX_BLOCK_BYTES:
        raise TransportError(
            "the peer's shared memory is in huge pages, which may run out later: "
            "it must come from memfd_create without MFD_HUGETLB"
        )
    size = status.st_size
    if not 0 < size <= max_bytes:
        raise TransportError(
            f"the peer's shared memory has {size} bytes: it must have 1 to {max_bytes}"
        )
    return size
