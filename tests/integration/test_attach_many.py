"""Many attaches change nothing in the sampled programs, and neither do samplers that are killed.

Each program repeats work with a known result until its standard input ends. It fails if a result is
wrong.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from stretto.profilers.sampling.process import WALL, ProcessError
from stretto.profilers.sampling.profile import Profile
from stretto.profilers.sampling.settings import Settings
from tests.support.polling import wait_until

pytestmark = pytest.mark.thorough

PERIOD_NS = 100_000
ATTACHES = 25
KILLS = 8
TIMEOUT_S = 300

HEAD = """
import os, select, sys, threading
def goes_on():
    return not select.select([sys.stdin], [], [], 0)[0]
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
def check(result, expected):
    if result != expected:
        sys.stderr.write(f"{result} is not {expected}\\n")
        os._exit(1)
print("ready", flush=True)
"""
PROGRAMS = {
    "threads": """
def rounds():
    while goes_on():
        check(fib(12), 144)
while goes_on():
    threads = [threading.Thread(target=rounds) for _ in range(4)]
    for each in threads: each.start()
    for each in threads: each.join()
""",
    "short threads": """
while goes_on():
    found = []
    threads = [threading.Thread(target=lambda: found.append(fib(5))) for _ in range(8)]
    for each in threads: each.start()
    for each in threads: each.join()
    check(found, [5] * 8)
""",
    "asyncio": """
import asyncio
async def walk(n):
    await asyncio.sleep(0)
    return n if n < 2 else await walk(n - 1) + await walk(n - 2)
async def main():
    while goes_on():
        check(await asyncio.gather(*(walk(7) for _ in range(5))), [13] * 5)
asyncio.run(main(), debug=False)
""",
    "forks": """
while goes_on():
    pid = os.fork()
    if not pid:
        os._exit(fib(10))
    check(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 55)
""",
    "extension": """
import hashlib, zlib
data = bytes(range(256)) * 4000
digest = hashlib.sha256(data).digest()
def rounds():
    while goes_on():
        check(hashlib.sha256(zlib.decompress(zlib.compress(data))).digest(), digest)
threads = [threading.Thread(target=rounds) for _ in range(2)]
for each in threads: each.start()
for each in threads: each.join()
""",
    "exec": """
threads = [threading.Thread(target=fib, args=(15,), daemon=True) for _ in range(3)]
for each in threads: each.start()
check(fib(10), 55)
if goes_on():
    source = sys.orig_argv[4].replace('print("ready", flush=True)', "")
    os.execv(sys.executable, [*sys.orig_argv[:4], source])
""",
    "generators": """
def numbers(n):
    if n:
        yield n
        yield from numbers(n - 1)
while goes_on():
    check(sum(numbers(50)), 1275)
    check(eval("1 +" * 50 + "1"), 51)
""",
}


@contextmanager
def working(source: str) -> Iterator[subprocess.Popen[str]]:
    """Run a program; at the end of the block it must end without an error."""
    program = subprocess.Popen(
        [sys.executable, "-X", "dev", "-c", HEAD + source],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
        yield program
        output, errors = program.communicate(timeout=TIMEOUT_S)
    finally:
        program.kill()
    assert (program.returncode, output, errors) == (0, "", "")


@pytest.mark.parametrize("native", [False, True], ids=["python", "native"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_program_works_on_while_samplers_attach_and_leave(name: str, *, native: bool) -> None:
    settings = Settings(WALL, PERIOD_NS, native=native)
    with working(PROGRAMS[name]) as program:
        for _ in range(ATTACHES):
            profile = Profile(settings, lambda _packets: None)
            profile.follow(program.pid)
            profile.add_children(program.pid)
            wait_until(lambda profile=profile: profile.sampled > 10)  # type: ignore[misc]
            profile.stop()
            profile.join()
            assert profile.error is None


SAMPLER = f"""
import sys
from stretto.profilers.sampling.process import WALL
from stretto.profilers.sampling.profile import Profile
from stretto.profilers.sampling.settings import Settings
pid, native = int(sys.argv[1]), sys.argv[2] == "True"
print("ready", flush=True)
while True:
    profile = Profile(Settings(WALL, {PERIOD_NS}, native=native), lambda _packets: None)
    profile.follow(pid)
    profile.run(pid, 0.02)
"""


@pytest.mark.parametrize("native", [False, True], ids=["python", "native"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_program_works_on_when_a_sampler_is_killed(name: str, *, native: bool) -> None:
    with working(PROGRAMS[name]) as program:
        for _ in range(KILLS):
            command = [sys.executable, "-c", SAMPLER, str(program.pid), str(native)]
            with subprocess.Popen(command, stdout=subprocess.PIPE) as sampler:
                assert sampler.stdout is not None
                sampler.stdout.readline()
                with pytest.raises(subprocess.TimeoutExpired):
                    sampler.wait(random.uniform(0, 0.1))
                sampler.send_signal(signal.SIGKILL)


def test_interpreters_that_start_and_end_are_sampled_without_an_effect() -> None:
    profile = Profile(Settings(WALL, PERIOD_NS), lambda _packets: None)
    source = "import atexit, json; atexit.register(print, 'end'); print(json.dumps([1]))"
    for _ in range(ATTACHES):
        command = [sys.executable, "-X", "dev", "-c", source]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as program:
            profile.follow(program.pid)
            output, _ = program.communicate(timeout=TIMEOUT_S)
        assert (program.returncode, output) == (0, "[1]\nend\n")
    profile.stop()
    profile.join()
    assert profile.error is None
    assert profile.sampled > 0


def test_sampler_of_a_process_that_ends_meanwhile_ends_without_an_error() -> None:
    for _ in range(ATTACHES):
        profile = Profile(Settings(WALL, PERIOD_NS), lambda _packets: None)
        with working("") as program, suppress(ProcessError):
            profile.add(program.pid)
        profile.run(program.pid)
        assert profile.error is None
