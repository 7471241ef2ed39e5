"""The verb `dump`."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from stretto.cli.verb_parser import VerbParser, flag
from stretto.profilers.sampling.await_tree import read_tasks
from stretto.profilers.sampling.command_line import command_line
from stretto.profilers.sampling.mixed_stacks import read_mixed_stacks
from stretto.profilers.sampling.process import find_python
from stretto.profilers.sampling.stacks import read_stacks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stretto.profilers.sampling.await_tree import Task
    from stretto.profilers.sampling.stacks import Frame, ThreadStack

DESCRIPTION = """\
Print the Python stack of each thread of a running process, once, and the tasks of asyncio.

  stretto dump 4711
  stretto dump 4711 --json
  stretto dump 4711 --native               C functions of threads that wait, too

The process needs no preparation. It is neither stopped nor changed: its memory is read while it
runs. CPython 3.11 to 3.15 is supported, in any environment of this machine.
"""

EPILOG = """\
For each thread, the kernel's function in which it waits is shown, or "runs"; then its calls, the
innermost first. The tasks of asyncio follow, with their coroutines: a task is below the one that
awaits it. As with a debugger, you can read your own processes, and root can read all.
`stretto attach PID` records samples of a process; `stretto top PID` shows them live.
"""


def run(arguments: Sequence[str]) -> int:
    """Run `stretto dump`."""
    parser = VerbParser("dump", DESCRIPTION, epilog=EPILOG)
    parser.add_argument("pid", type=int, metavar="PID", help="the process")
    flag(parser, "--json", "print JSON: an object with the lists `threads` and `tasks`")
    flag(parser, "--native", "show the C functions, too, of threads that wait in the kernel")
    options = parser.parse_args(list(arguments))
    process = find_python(options.pid)
    stacks = read_mixed_stacks(process) if options.native else read_stacks(process)
    try:
        tasks = read_tasks(process)
    except OSError:
        tasks = None  # The process has ended.
    if options.json:
        print(_as_json(options.pid, process.layout.version, stacks, tasks))
    else:
        text = _as_text(options.pid, process.layout.version, stacks, native=options.native)
        print(text + "".join(await_lines(tasks or [])), end="")
    return 0


def _as_json(
    pid: int, version: tuple[int, int], stacks: list[ThreadStack], tasks: list[Task] | None
) -> str:
    threads = [_thread(stack) for stack in stacks]
    content = {
        "pid": pid,
        "command": command_line(pid),
        "python": "{}.{}".format(*version),
        "threads": threads,
        "tasks": None if tasks is None else _tasks(tasks),
    }
    return json.dumps(content, indent=2)


def _thread(stack: ThreadStack) -> dict[str, object]:
    content = {**stack._asdict(), "frames": _frames(stack)}
    del content["state"]
    return content


def _tasks(tasks: list[Task]) -> list[dict[str, object]]:
    names = {task.address: task.name for task in tasks}
    return [
        {
            "name": task.name,
            "runs": task.runs,
            "frames": [frame._asdict() for frame in task.frames],
            "awaited_by": [names[each] for each in task.awaited_by if each in names],
        }
        for task in tasks
    ]


def await_lines(tasks: list[Task]) -> Iterator[str]:
    """Yield the lines of the tree of tasks: each task is below the one that awaits it.

    A task that several tasks await is below each of them; what it awaits is below the first one.
    """
    if not tasks:
        return
    yield f"\nasyncio: {len(tasks)} task{'' if len(tasks) == 1 else 's'}\n"
    below: dict[int, list[Task]] = {task.address: [] for task in tasks}
    for task in tasks:
        for awaiter in below.keys() & task.awaited_by:
            below[awaiter].append(task)
    roots = [task for task in tasks if not below.keys() & task.awaited_by]
    shown: set[int] = set()
    for task in (*roots, *tasks):
        if task.address not in shown:
            yield from _branch(task, below, shown)


def _branch(root: Task, below: dict[int, list[Task]], shown: set[int]) -> Iterator[str]:
    ahead = [(root, "    ")]
    while ahead:
        task, indent = ahead.pop()
        if task.address in shown:
            yield f"{indent}{task.name} (see above)\n"
            continue
        shown.add(task.address)
        yield f"{indent}{task.name}{' (runs)' if task.runs else ''}\n"
        for frame in reversed(task.frames):
            yield f"{indent}    {_frame_text(frame)}\n"
        ahead += [(other, f"{indent}    ") for other in reversed(below[task.address])]


def _frames(stack: ThreadStack) -> list[dict[str, object]] | None:
    return None if stack.frames is None else [frame._asdict() for frame in stack.frames]


def _as_text(pid: int, version: tuple[int, int], stacks: list[ThreadStack], *, native: bool) -> str:
    head = "Process {}: {}\nCPython {}.{}\n".format(pid, command_line(pid), *version)
    return head + "".join(f"\n{_thread_text(stack, native=native)}" for stack in stacks)


def _thread_text(stack: ThreadStack, *, native: bool) -> str:
    state = f"waits in {stack.waits_in}" if stack.waits_in else "runs"
    gil = ", holds the GIL" if stack.holds_gil else ""
    lines = [f'Thread {stack.native_id} "{stack.name}": {state}{gil}']
    if stack.frames is None:
        lines.append("    (its stack changed at each attempt to read it)")
    elif native and not stack.has_native:
        lines.append("    (without C functions: it doesn't wait in the kernel)")
    elif stack.has_unplaced:
        lines.append(
            "    (outer Python calls are last: their places among C functions aren't known)"
        )
    lines += [f"    {_frame_text(frame)}" for frame in stack.frames or ()]
    return "\n".join(lines) + "\n"


def _frame_text(frame: Frame) -> str:
    line = f":{frame.line}" if frame.line else ""
    filename = os.path.basename(frame.filename) if frame.native else frame.filename
    return f"{frame.function} ({filename}{line})"
