"""A profile over time: counts by function, child processes, exec, the end of a process."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable

import pytest

from stretto.profilers.sampling.process import CPU, GIL, STACK_SAMPLE, WALL, ProcessError
from stretto.profilers.sampling.profile import FIRST_SEQUENCE_ID, Profile
from stretto.profilers.sampling.settings import Settings
from stretto.protos.trace import Trace, TracePacket
from tests.support.polling import wait_until
from tests.support.python_targets import ASLEEP, BUSY, running

PERIOD_NS = 1_000_000


class Recorded:
    """Runs a profile in a thread, and collects what it writes."""

    def __init__(self, pid: int, settings: Settings) -> None:
        self.parts: list[bytes] = []
        self.profile = Profile(settings, self.parts.append)
        self.profile.add(pid)
        self._thread = threading.Thread(target=self.profile.run, args=(pid,))
        self._thread.start()

    def until(self, condition: Callable[[], bool]) -> None:
        try:
            wait_until(condition)
        finally:
            self.profile.stop()
            self._thread.join()

    def packets(self) -> list[TracePacket]:
        return list(Trace.decode(b"".join(self.parts)).packet)

    def functions(self) -> dict[str, tuple[int, int]]:
        return {row.key.function: (row.own, row.total) for row in self.profile.functions()}


def test_cpu_mode_samples_the_function_that_runs() -> None:
    with running(BUSY) as program:
        recorded = Recorded(program.pid, Settings(CPU, PERIOD_NS))
        recorded.until(lambda: recorded.profile.sampled > 200)
    functions = recorded.functions()
    assert functions["leaf"][0] > functions["outer"][0]
    assert functions["<module>"][1] >= functions["leaf"][1]
    assert functions.get("waits", (0, 0))[1] <= recorded.profile.sampled // 10


SHORT_THREADS = """
def brief():
    end = time.thread_time() + 0.005
    while time.thread_time() < end:
        pass

print("ready", flush=True)
while True:
    thread = threading.Thread(target=brief)
    thread.start()
    thread.join()
"""


def cpu_ns(pid: int) -> int:
    """Return the CPU time of a process."""
    return time.clock_gettime_ns((~pid << 3) | 2)  # As clock_getcpuclockid(3) makes it.


def test_threads_that_live_for_milliseconds_are_sampled() -> None:
    with running(SHORT_THREADS) as program:
        before = cpu_ns(program.pid)
        recorded = Recorded(program.pid, Settings(CPU, PERIOD_NS))
        recorded.until(lambda: cpu_ns(program.pid) - before > 1_000_000_000)
        periods = (cpu_ns(program.pid) - before) / PERIOD_NS
    profile = recorded.profile
    # On a busy machine, samples are late.
    assert profile.sampled > (periods - profile.late) * 0.5
    assert profile.sampled + profile.late + profile.torn + profile.unseen > periods * 0.6


def test_wall_mode_samples_waiting_threads() -> None:
    with running(BUSY) as program:
        recorded = Recorded(program.pid, Settings(WALL, PERIOD_NS))
        recorded.until(lambda: recorded.profile.sampled > 200)
    assert recorded.functions()["waits"][1] > recorded.profile.sampled // 4


@pytest.mark.skipif(sys.version_info < (3, 12), reason="3.11 does not tell who holds the GIL")
def test_gil_mode_samples_the_thread_that_holds_the_gil() -> None:
    with running(BUSY) as program:
        recorded = Recorded(program.pid, Settings(GIL, PERIOD_NS))
        recorded.until(lambda: recorded.profile.sampled > 200)
    assert recorded.functions()["leaf"][0] > recorded.profile.sampled // 2


def test_packets_name_process_threads_functions_and_files() -> None:
    with running(BUSY) as program:
        recorded = Recorded(program.pid, Settings(WALL, PERIOD_NS))
        recorded.until(lambda: recorded.profile.sampled > 500)
    packets = recorded.packets()
    data = [packet.interned_data for packet in packets if packet.interned_data]
    names = {bytes(each.str) for part in data for each in part.function_names}
    assert {b"leaf", b"outer", b"waits", b"<module>"} <= names
    trees = [packet.process_tree for packet in packets if packet.process_tree]
    assert [process.pid for tree in trees for process in tree.processes] == [program.pid]
    assert len([thread for tree in trees for thread in tree.threads]) == 2
    assert {packet.trusted_packet_sequence_id for packet in packets} == {FIRST_SEQUENCE_ID}


def test_process_that_names_itself_is_not_named_by_its_samples() -> None:
    with running(BUSY) as program:
        recorded = Recorded(program.pid, Settings(WALL, PERIOD_NS))
        recorded.profile.follow(program.pid, names_itself=True)
        recorded.until(lambda: recorded.profile.sampled > 50)
    trees = [packet.process_tree for packet in recorded.packets() if packet.process_tree]
    assert [process for tree in trees for process in tree.processes] == []
    assert len([thread for tree in trees for thread in tree.threads]) == 2


def test_children_are_sampled() -> None:
    source = """
pid = os.fork()
if pid:
    print("ready", flush=True)
    time.sleep(1000)  # sleep: what is sampled
def child():
    while True:
        pass
child()
"""
    with running(source) as program:
        recorded = Recorded(program.pid, Settings(CPU, PERIOD_NS))
        recorded.until(lambda: "child" in recorded.functions())
    assert recorded.profile.processes == 2
    assert not recorded.profile.problems


def test_profile_ends_with_its_process() -> None:
    source = "print('ready', flush=True)\nsys.stdin.readline()"
    with running(source) as program:
        profile = Profile(Settings(WALL, PERIOD_NS), lambda _packets: None)
        profile.add(program.pid)
        program.communicate("end\n")
        profile.run(program.pid)
    assert profile.error is None


def test_process_is_sampled_after_it_has_executed_another_program() -> None:
    other = "def late():\n while 1: pass\nlate()"
    source = f"""
print("ready", flush=True)
sys.stdin.readline()
os.execv(sys.executable, [sys.executable, "-c", {other!r}])
"""
    with running(source) as program:
        recorded = Recorded(program.pid, Settings(WALL, PERIOD_NS))
        assert program.stdin is not None
        program.stdin.write("go\n")
        program.stdin.flush()
        recorded.until(lambda: "late" in recorded.functions())


def test_functions_of_a_process_that_has_just_ended_have_names() -> None:
    source = """
print("ready", flush=True)
def brief():
    end = time.process_time() + 0.5
    while time.process_time() < end:
        pass
sys.stdin.readline()
brief()
"""
    with running(source) as program:
        recorded = Recorded(program.pid, Settings(CPU, PERIOD_NS, numbered=False))
        program.communicate("go\n")
        recorded.until(lambda: program.pid not in recorded.profile._followed)
    assert recorded.functions()["brief"][0] > 0
    assert all(packet.trusted_packet_sequence_id == 0 for packet in recorded.packets())


def test_stack_samples_have_their_task_and_weight() -> None:
    perfetto = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    with running(BUSY) as program:
        recorded = Recorded(program.pid, Settings(WALL, PERIOD_NS, form=STACK_SAMPLE))
        recorded.until(lambda: recorded.profile.sampled > 200)
    trace = perfetto.Trace.FromString(b"".join(recorded.parts))
    defaults = next(p.trace_packet_defaults for p in trace.packet if p.sequence_flags & 1)
    assert defaults.stack_sample_defaults.source == "python.wall"
    samples = [packet.stack_sample for packet in trace.packet if packet.HasField("stack_sample")]
    whole = [sample for sample in samples if not sample.unwind_error]
    assert len(whole) == recorded.profile.sampled
    stacks = {each.iid for p in trace.packet for each in p.interned_data.callstacks}
    assert {sample.callstack_iid for sample in whole} <= stacks
    assert {sample.primary_weight for sample in samples} == {PERIOD_NS}
    assert {sample.task_context.pid for sample in samples} == {program.pid}
    assert len({sample.task_context.tid for sample in whole}) == 2
    assert not any(packet.HasField("perf_sample") for packet in trace.packet)


def test_error_of_the_output_ends_the_profile() -> None:
    def fail(_packets: bytes) -> None:
        raise OSError(28, "No space left on device")

    with running(ASLEEP) as program:
        profile = Profile(Settings(WALL, PERIOD_NS), fail)
        profile.add(program.pid)
        profile.run(program.pid)
    assert isinstance(profile.error, OSError)


def test_missing_process_is_refused_when_it_is_added() -> None:
    with pytest.raises(ProcessError, match="There is no process"):
        Profile(Settings(CPU, PERIOD_NS), lambda _packets: None).add(4194305)


def test_code_that_takes_the_address_of_freed_code_has_its_own_name() -> None:
    source = """
print("ready", flush=True)
n = 0
while True:
    n += 1
    names = {}
    exec(f"def made_{n % 50}():\\n for _ in range(200000): pass\\nmade_{n % 50}()", names)
"""
    with running(source) as program:
        recorded = Recorded(program.pid, Settings(CPU, PERIOD_NS))
        recorded.until(lambda: sum(name[:5] == "made_" for name in recorded.functions()) > 10)
