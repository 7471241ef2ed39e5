"""The stacks of all threads of a process are read once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from stretto.profilers.sampling.process import find_python
from stretto.profilers.sampling.stacks import ThreadStack, read_stacks, running_scripts
from tests.support.polling import wait_until
from tests.support.python_targets import ASLEEP, BUSY, HEAD, running


def functions(stack: ThreadStack) -> list[str]:
    assert stack.frames is not None
    return [frame.function for frame in stack.frames]


def when_it_waits(pid: int) -> ThreadStack:
    """Wait until the only thread sleeps in its innermost call; return its stack."""
    wait_until(lambda: read_stacks(find_python(pid))[0].waits_in is not None)
    (stack,) = read_stacks(find_python(pid))
    return stack


def test_stack_of_a_sleeping_program_has_functions_and_lines() -> None:
    with running(ASLEEP) as program:
        stack = when_it_waits(program.pid)
    assert functions(stack) == ["Shop.order", "main", "<module>"]
    assert stack.frames is not None
    lines = [frame.line for frame in stack.frames]
    source = (HEAD + ASLEEP).splitlines()
    assert "sleep" in source[lines[0] - 1]
    assert "order()" in source[lines[1] - 1]
    assert source[lines[2] - 1] == "main()"
    assert stack.native_id == program.pid
    assert stack.waits_in
    assert not stack.holds_gil


def test_each_thread_has_a_stack_and_the_main_thread_is_first() -> None:
    with running(BUSY) as program:
        main, other = read_stacks(find_python(program.pid))
    assert main.native_id == program.pid
    assert functions(main)[-1] == "<module>"
    assert functions(other)[0] == "waits"
    assert not other.holds_gil


def test_script_of_a_sleeping_main_thread_is_found(tmp_path: Path) -> None:
    script = tmp_path / "sleeps.py"
    script.write_text(
        "import time\nprint('ready', flush=True)\ntime.sleep(1000)  # sleep: sampled\n"
    )
    command = [sys.executable, str(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as program:
        try:
            assert program.stdout is not None
            assert program.stdout.readline()
            assert running_scripts(find_python(program.pid)) == {str(script)}
        finally:
            program.kill()


def test_all_calls_of_a_deep_recursion_are_read() -> None:
    source = """
sys.setrecursionlimit(5000)
def dive(n):
    if n:
        dive(n - 1)
    print("ready", flush=True)
    time.sleep(1000)  # sleep: what is sampled
dive(900)
"""
    with running(source) as program:
        stack = when_it_waits(program.pid)
    assert functions(stack) == ["dive"] * 901 + ["<module>"]


def test_generators_and_coroutines_are_part_of_the_stack() -> None:
    source = """
def inner():
    print("ready", flush=True)
    time.sleep(1000)  # sleep: what is sampled
    yield

def outer():
    yield from inner()

async def work():
    list(outer())

import asyncio
asyncio.run(work())
"""
    with running(source) as program:
        stack = when_it_waits(program.pid)
    shown = [name for name in functions(stack) if name in ("inner", "outer", "work", "<module>")]
    assert shown == ["inner", "outer", "work", "<module>"]


def test_holder_of_the_gil_is_known_from_3_12_on() -> None:
    source = "print('ready', flush=True)\nwhile True: pass"
    known = sys.version_info >= (3, 12)
    # On a busy machine the program may not run during the first reads.
    reads = 1_000_000 if known else 1000
    with running(source) as program:
        process = find_python(program.pid)
        held = any(read_stacks(process)[0].holds_gil for _ in range(reads))
    assert held == known


def test_threads_have_their_names_in_python() -> None:
    source = """
class Worker(threading.Thread):
    def run(self):
        time.sleep(1000)  # sleep: what is sampled
long = "mailer of the second floor"
threading.Thread(target=time.sleep, args=[1000], name=long, daemon=True).start()
worker = Worker(name="würfel")
worker.daemon = True
worker.extra = 1
vars(worker)["more"] = 2
worker.start()
print("ready", flush=True)
time.sleep(1000)  # sleep: what is sampled
"""
    with running(source) as program:
        process = find_python(program.pid)
        expected = {"MainThread", "mailer of the second floor", "würfel"}
        wait_until(lambda: {stack.name for stack in read_stacks(process)} == expected)
        main, *_ = read_stacks(process)
        assert (main.native_id, main.name) == (program.pid, "MainThread")
