"""Finds the Python interpreter in a running process.

The interpreter's state is the variable `_PyRuntime`, in the program's file or in libpython. Its
address is the address of the file in memory (/proc/PID/maps) plus the symbol's offset in the file.
The file is opened through /proc/PID/root, so that processes in containers are found, too.
"""

from __future__ import annotations

import mmap
import os
import struct
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from stretto._native import PythonSampler, read_process_memory
from stretto.base import proc_files
from stretto.base.errors import StrettoError
from stretto.profilers.sampling.elf import ElfFile
from stretto.profilers.sampling.layout import OFFSETS_BYTES, OFFSETS_COOKIE, Layout, layout_of

if TYPE_CHECKING:
    from collections.abc import Iterator

CPU, WALL, GIL = range(3)
"""Modes of a sampler: threads that run, all threads, the thread that holds the GIL."""

PERF_SAMPLE, STACK_SAMPLE = range(2)
"""Forms of a sample: the message `PerfSample` that all readers know, and its newer replacement."""

_MAX_INTERPRETERS = 16


class ProcessError(StrettoError):
    """A process can't be sampled; the message says why, and what to do."""


class NoPythonError(ProcessError):
    """A process has no interpreter."""


class PythonProcess(NamedTuple):
    """A process with a Python interpreter."""

    pid: int
    runtime: int
    """The address of `_PyRuntime`."""
    layout: Layout

    def heads(self) -> list[int]:
        """Return, for each interpreter, the address of the pointer to its first thread.

        Raises:
            OSError: The process has ended.
        """
        return [each + self.layout["interpreter_threads_head"] for each in self.interpreters()]

    def modules(self) -> list[int]:
        """Return, for each interpreter, the address of `sys.modules`.

        Raises:
            OSError: The process has ended.
        """
        offset = self.layout["interpreter_imports_modules"]
        return [self._word(each + offset) for each in self.interpreters()]

    def interpreters(self) -> Iterator[int]:
        """Yield the address of each interpreter."""
        address = self._word(self.runtime + self.layout["runtime_interpreters_head"])
        for _ in range(_MAX_INTERPRETERS):
            if not address:
                return
            yield address
            address = self._word(address + self.layout["interpreter_next"])

    def gil(self) -> tuple[int, int]:
        """Return the addresses of the GIL's last holder and of its lock; (0, 0) if unknown."""
        interpreter = next(self.interpreters(), 0)
        if not interpreter or not self.layout["has_gil"]:
            return 0, 0
        gil = self._word(interpreter + self.layout["interpreter_ceval_gil"])
        return gil + self.layout["gil_holder"], gil + self.layout["gil_locked"]

    def sampler(
        self,
        mode: int,
        period_ns: int,
        sequence_id: int = 1,
        start_us: int = 0,
        form: int = PERF_SAMPLE,
    ) -> PythonSampler:
        """Return a sampler of the process; `mode` is CPU, WALL or GIL.

        The other arguments are those of `PythonSampler`.

        Raises:
            ProcessError: The process has ended, or has no interpreter any more.
        """
        try:
            return PythonSampler(
                self.pid,
                self.layout,
                self.heads(),
                self.gil(),
                mode,
                period_ns,
                sequence_id,
                start_us,
                form,
            )
        except OSError as error:
            raise _unreadable(self.pid, error) from error

    def _word(self, address: int) -> int:
        return int.from_bytes(read_process_memory(self.pid, address, 8), "little")


def find_python(pid: int) -> PythonProcess:
    """Find the interpreter of a process.

    Raises:
        ProcessError: There is no such process, no right to read it, no interpreter in it, or one
            of another version.
    """
    try:
        for path, start in _files(pid):
            found = _in_file(pid, path, start)
            if found is not None:
                return found
    except OSError as error:
        raise _unreadable(pid, error) from error
    if proc_files.stat(pid)[:1] == [b"Z"]:
        raise ProcessError(f"Process {pid} has ended; only its parent's wait() is missing.")
    raise NoPythonError(f"Process {pid} has no CPython interpreter (version 3.11 to 3.15).")


_AS_ROOT = (
    "Root needs the capability CAP_SYS_PTRACE for it, which a container may lack: "
    "`--cap-add SYS_PTRACE` gives it"
)
_AS_USER = (
    "Only its user or root may do so, and /proc/sys/kernel/yama/ptrace_scope may allow it for "
    "child processes only; `stretto doctor` shows what this machine allows"
)


def _unreadable(pid: int, error: OSError) -> ProcessError:
    if isinstance(error, FileNotFoundError | ProcessLookupError):
        return ProcessError(f"There is no process {pid}.")
    if isinstance(error, PermissionError):
        reason = _AS_ROOT if os.geteuid() == 0 else _AS_USER
        return ProcessError(f"Process {pid} can't be read: {error.strerror}. {reason}.")
    return ProcessError(f"Process {pid} can't be read: {error}.")


def section_address(pid: int, section: str, module: str) -> int | None:
    """Return the address of a section in a process; None if no file has it.

    Args:
        pid: The process.
        section: The section's name.
        module: The name of an extension module that may have it, or else the interpreter.

    Raises:
        OSError: The process has ended, or can't be read.
    """
    for path, start in _files(pid, module):
        with suppress(ValueError, FileNotFoundError), _image(pid, path) as image:
            elf = ElfFile(image)
            found = elf.section(section)
            if found is not None:
                return found + start - elf.first_address
    return None


def _files(pid: int, module: str = "python") -> Iterator[tuple[str, int]]:
    """Yield the files in a process that may have the interpreter: (path, first address).

    Args:
        pid: The process.
        module: The name of an extension module whose file is yielded, too.
    """
    seen = set()
    for line in Path(f"/proc/{pid}/maps").read_text(errors="surrogateescape").splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) < 6 or fields[2] != "00000000" or fields[5] in seen:
            continue
        path = fields[5]
        seen.add(path)
        name = os.path.basename(path)
        if "python" in name or name.startswith(module) or path == _executable(pid):
            yield path, int(fields[0].partition("-")[0], 16)


def _executable(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""


@contextmanager
def _image(pid: int, path: str) -> Iterator[mmap.mmap]:
    """Map a file of a process."""
    with (
        open(f"/proc/{pid}/root{path}", "rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as image,
    ):
        yield image


def _in_file(pid: int, path: str, start: int) -> PythonProcess | None:
    try:
        with _image(pid, path) as image:
            elf = ElfFile(image)
            moved = start - elf.first_address
            symbols = elf.symbols("_PyRuntime", "Py_Version")
            section = elf.section(".PyRuntime")
    except (ValueError, FileNotFoundError):
        return None
    runtime = symbols.get("_PyRuntime", section)
    if runtime is None:
        return None
    return _describe(pid, runtime + moved, symbols.get("Py_Version", -moved) + moved)


def _describe(pid: int, runtime: int, version_address: int) -> PythonProcess:
    content = read_process_memory(pid, runtime, OFFSETS_BYTES)
    has_table = content[:8] == OFFSETS_COOKIE
    if has_table:
        (version,) = struct.unpack_from("<Q", content, 8)
    elif version_address:
        version = int.from_bytes(read_process_memory(pid, version_address, 8), "little")
    else:
        raise ProcessError(f"Process {pid} runs a CPython whose version is unknown.")
    try:
        layout = layout_of((version >> 24, version >> 16 & 0xFF), content)
    except ValueError as error:
        raise ProcessError(f"Process {pid} can't be sampled: {error}.") from error
    return PythonProcess(pid, runtime, layout)
