"""Samples with C functions: of threads that run, which are stopped, and of threads that wait."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stretto.profilers.sampling.native_code import LOOP, NativeCode
from stretto.profilers.sampling.process import CPU, WALL
from stretto.profilers.sampling.settings import Settings
from stretto.protos.trace import Frame
from tests.support.polling import wait_until
from tests.support.python_targets import running
from tests.unit.profilers.sampling.test_profile import PERIOD_NS, Recorded

pytestmark = pytest.mark.skipif(
    sys.version_info >= (3, 14),
    reason="Debian's builds have no names for all parts of the interpreter's loop",
)

DIGESTS = """
import hashlib
data = bytes(1 << 20)
def key(number):
    return hashlib.sha256(data).digest()
def sorter():
    sorted([1, 2], key=key)
print("ready", flush=True)
while True:
    sorter()
"""
WAITS = """
def waits():
    time.sleep(1000)  # sleep: what is sampled
print("ready", flush=True)
waits()
"""
Call = tuple[str, bool]
"""A function, and whether it is a C function."""


def stacks_of(recorded: Recorded) -> Iterator[list[Call]]:
    """Yield the different stacks of a profile, the outermost call first."""
    names: dict[int, str] = {}
    calls: dict[int, Call] = {}
    for packet in recorded.packets():
        data = packet.interned_data
        if data is None:
            continue
        names.update((each.iid, bytes(each.str).decode()) for each in data.function_names)
        for frame in data.frames:
            is_native = frame.kind == Frame.Kind.KIND_NATIVE
            calls[frame.iid] = (names[frame.function_name_id], is_native)
        yield from ([calls[number] for number in stack.frame_ids] for stack in data.callstacks)


def sampled(source: str, mode: int) -> list[list[Call]]:
    """Return the stacks of a program with C functions."""
    with running(source) as program:
        recorded = Recorded(program.pid, Settings(mode, PERIOD_NS, native=True))
        recorded.until(lambda: recorded.profile.native > 20)
        assert "TracerPid:\t0" in Path(f"/proc/{program.pid}/status").read_text()
    assert not recorded.profile.native_problems
    return [stack for stack in stacks_of(recorded) if any(native for _, native in stack)]


def test_c_functions_of_a_thread_that_runs_are_below_their_python_caller() -> None:
    stacks = sampled(DIGESTS, CPU)
    digests = [stack for stack in stacks if ("key", False) in stack[:-1]]
    assert digests
    for stack in digests:
        calls = [name for name, native in stack if not native]
        assert calls[-2:] == ["sorter", "key"]
        assert stack[stack.index(("key", False)) + 1][1]
        # `sorted` calls `key`.
        assert stack[stack.index(("key", False)) - 1][1]


def test_stacks_begin_with_python_calls_and_have_no_interpreter_loop() -> None:
    stacks = sampled(DIGESTS, CPU)
    assert not any(stack[0][1] for stack in stacks)
    names = {name for stack in stacks for name, _ in stack}
    assert not any(name.startswith(LOOP) for name in names)


def test_c_functions_of_a_thread_that_waits_are_shown_without_a_stop() -> None:
    with running(WAITS) as program:
        recorded = Recorded(program.pid, Settings(WALL, PERIOD_NS, native=True))
        recorded.until(lambda: recorded.profile.native > 20)
    stacks = [stack for stack in stacks_of(recorded) if stack[-1][1]]
    assert any(("waits", False) in stack for stack in stacks)
    # It may have been on its way into the kernel at the first samples.
    assert recorded.profile.paused_ns < 10_000_000


def test_thread_that_is_not_stopped_has_its_python_calls_only() -> None:
    settings = Settings(CPU, PERIOD_NS, native=True)
    with running(DIGESTS) as program:
        recorded = Recorded(program.pid, settings)
        # The pauses are limited: 20,000 Hz would take more.
        fast = Recorded(program.pid, settings._replace(period_ns=50_000))
        fast.until(lambda: fast.profile.unstopped > 20)
        recorded.until(lambda: recorded.profile.sampled > 20)
    assert fast.profile.sampled > fast.profile.native
    # The stack of a thread that was stopped may be unreadable: a few samples are neither.
    neither = fast.profile.sampled - fast.profile.unstopped - fast.profile.native
    assert neither <= fast.profile.sampled // 10


def test_addresses_of_the_loop_are_in_the_code() -> None:
    with running(WAITS) as program:
        wait_until(lambda: bool(NativeCode(program.pid).loops()))
        code = NativeCode(program.pid)
    for address in code.loops():
        assert any(start <= address < end for start, end, _ in code.ranges)
        assert code.frame(address).function.partition(".")[0] == LOOP
