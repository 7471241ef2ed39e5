"""`stretto dump`: the stacks of a running process."""

from __future__ import annotations

import json
import sys

import pytest

from stretto.cli.dump import await_lines
from stretto.cli.main import main
from stretto.profilers.sampling.await_tree import Task
from stretto.profilers.sampling.mixed_stacks import read_mixed_stacks
from stretto.profilers.sampling.process import find_python
from stretto.profilers.sampling.stacks import Frame, ThreadStack
from tests.support.polling import wait_until
from tests.support.python_targets import ASLEEP, BUSY, running


def test_text_has_threads_with_their_calls(capsys: pytest.CaptureFixture[str]) -> None:
    with running(BUSY) as program:
        assert main(["dump", str(program.pid)]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"Process {program.pid}: {sys.executable} -c ")
    assert "CPython {}.{}\n".format(*sys.version_info) in text
    assert f'Thread {program.pid} "' in text
    assert "    waits (<string>:13)\n    Thread.run (" in text


def test_json_has_the_threads_with_their_frames(capsys: pytest.CaptureFixture[str]) -> None:
    with running(ASLEEP) as program:
        assert main(["dump", str(program.pid), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["pid"] == program.pid
    (thread,) = content["threads"]
    assert thread["native_id"] == program.pid
    frames = [(frame["function"], frame["filename"]) for frame in thread["frames"]]
    assert frames[-2:] == [("main", "<string>"), ("<module>", "<string>")]


def one_thread_waits(pid: int) -> bool:
    return any(stack.has_native for stack in read_mixed_stacks(find_python(pid)))


def test_c_functions_are_shown_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    with running(BUSY) as program:
        wait_until(lambda: one_thread_waits(program.pid))
        assert main(["dump", str(program.pid), "--native"]) == 0
    text = capsys.readouterr().out
    assert "nanosleep (libc.so.6)\n" in text
    assert "    waits (<string>:13)\n" in text
    assert "    (without C functions: it doesn't wait in the kernel)\n    " in text


def test_python_calls_without_a_known_place_are_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = [Frame("sleep", "/lib/libc.so.6", 0, native=True), Frame("main", "shop.py", 3)]
    stack = ThreadStack(7, "main", False, "nanosleep", frames, 0, True, True)
    monkeypatch.setattr("stretto.cli.dump.read_mixed_stacks", lambda _process: [stack])
    with running(ASLEEP) as program:
        assert main(["dump", str(program.pid), "--native"]) == 0
    text = capsys.readouterr().out
    assert "    (outer Python calls are last: " in text
    assert text.endswith("    sleep (libc.so.6)\n    main (shop.py:3)\n")


def test_json_says_which_frames_are_c_functions(capsys: pytest.CaptureFixture[str]) -> None:
    with running(BUSY) as program:
        wait_until(lambda: one_thread_waits(program.pid))
        assert main(["dump", str(program.pid), "--native", "--json"]) == 0
    threads = json.loads(capsys.readouterr().out)["threads"]
    waiting = next(thread for thread in threads if thread["has_native"])
    assert {frame["native"] for frame in waiting["frames"]} == {True, False}
    assert "state" not in waiting


def test_missing_process_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", "4194305"]) == 1
    assert "There is no process 4194305." in capsys.readouterr().err


def test_task_is_below_the_one_that_awaits_it() -> None:
    query = Frame("query", "app.py", 4)
    tasks = [
        Task(3, "Task-3", False, [Frame("checkout", "app.py", 7), query], [1]),
        Task(1, "main", True, [], []),
        Task(4, "both", False, [query], [1, 3]),
    ]
    assert (
        "".join(await_lines(tasks))
        == """
asyncio: 3 tasks
    main (runs)
        Task-3
            query (app.py:4)
            checkout (app.py:7)
            both
                query (app.py:4)
        both (see above)
"""
    )


def test_long_chain_of_tasks_is_shown() -> None:
    tasks = [Task(n, str(n), False, [], [n - 1]) for n in range(1, 3000)]
    assert len("".join(await_lines(tasks)).splitlines()) == 2 + len(tasks)


def test_tasks_that_await_each_other_are_shown_once() -> None:
    tasks = [Task(1, "a", False, [], [2]), Task(2, "b", False, [], [1])]
    assert "".join(await_lines(tasks)) == (
        "\nasyncio: 2 tasks\n    a\n        b\n            a (see above)\n"
    )
    assert not list(await_lines([]))
