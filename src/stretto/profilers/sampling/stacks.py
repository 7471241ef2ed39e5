"""Reads the stacks of all threads of a process once, for `stretto dump`."""

from __future__ import annotations

from itertools import chain, pairwise
from typing import TYPE_CHECKING, NamedTuple

from stretto.base import proc_files
from stretto.profilers.sampling.code_origin import is_body, runs_scripts
from stretto.profilers.sampling.objects import ObjectReader
from stretto.profilers.sampling.process import WALL, ProcessError
from stretto.profilers.sampling.thread_names import read_thread_names

if TYPE_CHECKING:
    from stretto.profilers.sampling.objects import CodeName
    from stretto.profilers.sampling.process import PythonProcess

_ANY_PERIOD_NS = 1_000_000


class Frame(NamedTuple):
    """A call in progress."""

    function: str
    filename: str
    line: int
    """The line that it executes; 0 if not known."""
    native: bool = False
    """Whether it is a C function; `filename` is then the file that has its code."""


class ThreadStack(NamedTuple):
    """A Python thread of a process."""

    native_id: int
    """The kernel's thread id."""
    name: str
    """Its name in Python, or else the kernel's name."""
    holds_gil: bool
    waits_in: str | None
    """The function of the kernel in which it waits; None if it runs, or waits for a CPU."""
    frames: list[Frame] | None
    """The innermost call first; None if the stack changed during each attempt to read it."""
    state: int
    """The address of its thread state."""
    has_native: bool = False
    """Whether C functions are among the frames."""
    has_unplaced: bool = False
    """Whether the last Python calls are there only because their places aren't known."""


def read_stacks(process: PythonProcess) -> list[ThreadStack]:
    """Return the threads of a process with their stacks, the main thread first.

    Raises:
        ProcessError: The process has ended, or can't be read.
    """
    sampler = process.sampler(WALL, _ANY_PERIOD_NS)
    try:
        rows = sampler.dump()
    except ProcessLookupError as error:
        raise ProcessError(f"Process {process.pid}: {error}.") from error
    frames = sampler.take_frames()
    reader = ObjectReader(process.pid, process.layout)
    thread_names = read_thread_names(process, reader)
    names: dict[int, CodeName] = {}

    def frame(number: int) -> Frame:
        code, line = frames[number - 1]
        if code not in names:
            names[code] = reader.code_name(code)
        return Frame(names[code].function, names[code].filename, line)

    stacks = [
        ThreadStack(
            native_id,
            thread_names.get(native_id) or kernel_name(process.pid, native_id),
            holds_gil,
            _waits_in(process.pid, native_id),
            None if numbers is None else [frame(number) for number in reversed(numbers)],
            state,
        )
        for state, native_id, holds_gil, numbers in rows
    ]
    return sorted(stacks, key=lambda each: (each.native_id != process.pid, each.native_id))


def running_scripts(process: PythonProcess) -> set[str]:
    """Return the files of the scripts that a process runs, also if their threads sleep.

    A script is the body of a file that nothing has called, or `runpy`. Empty if it can't be read.
    """
    try:
        stacks = read_stacks(process)
    except ProcessError:
        return set()
    calls = (pairwise([None, *reversed(stack.frames or [])]) for stack in stacks)
    return {
        frame.filename
        for caller, frame in chain.from_iterable(calls)
        if frame is not None
        and is_body(frame.function, frame.filename)
        and (caller is None or runs_scripts(caller.filename))
    }


def kernel_name(pid: int, native_id: int) -> str:
    """Return the kernel's name of a thread; "" if it has ended."""
    return _task_file(pid, native_id, "comm")


def _waits_in(pid: int, native_id: int) -> str | None:
    function = _task_file(pid, native_id, "wchan")
    return None if function in {"", "0"} else function


def _task_file(pid: int, native_id: int, name: str) -> str:
    return proc_files.read(pid, f"task/{native_id}/{name}").decode(errors="replace").strip()
