"""`linux.perf` of `stretto probes` on this kernel, with `stretto traced` as its service."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from stretto import _native
from stretto.analysis import TraceProcessor
from stretto.probes.perf import Perf
from stretto.probes.tracefs import Tracefs, TracefsError
from stretto.protos.config import DataSourceConfig, PerfEventConfig, PerfEvents, TraceConfig
from stretto.protos.trace import TracePacket
from tests.support.other_user import can_be_another_user
from tests.support.probing import Probing
from tests.support.sources import ROOT
from tests.support.traced import Daemon, Process, closing_all, daemon_environment

pytestmark = pytest.mark.once

Stacks, Timebase = PerfEventConfig.CallstackSampling, PerfEvents.Timebase
BUSY = "import hashlib\nwhile True: hashlib.sha256(bytes(1_000_000))"
SAMPLES_OF_RECIPE = """
with server as (select upid from slice join thread_track on track_id = thread_track.id
  join thread using (utid) where slice.name = 'handle' limit 1)
select sum(process.upid in (select upid from server)), sum(process.name = 'sha256sum')
from perf_sample join thread using (utid) join process using (upid) where callsite_id is not null
"""
"""Selects how many samples the recipe's program has, and its neighbours."""
WAITS_FOR_CPU = """
select s.dur, sum(min(t.ts + t.dur, s.ts + s.dur) - max(t.ts, s.ts))
from slice s join thread_track on s.track_id = thread_track.id
join thread_state t on t.utid = thread_track.utid
where s.name = 'handle' and t.state in ('R', 'R+') and t.ts < s.ts + s.dur and t.ts + t.dur > s.ts
group by s.id, s.dur
"""
"""Selects the duration of each request, and how long it waited for a CPU."""
CPU_CLOCK = ((1, 0, 0, 0, 0, None),)


def refusal() -> str:
    """Return why this user may not sample all processes; empty if they may."""
    sampler = _native.PerfSampler(1, True, True, 8, 10, 0)
    try:
        sampler.open(0, CPU_CLOCK, 100, 0, time.CLOCK_MONOTONIC_RAW)
    except OSError as error:
        return f"perf_event_open: {error}"
    finally:
        sampler.close()
    return ""


def all_may_sample() -> bool:
    level = Path("/proc/sys/kernel/perf_event_paranoid")
    return not level.exists() or int(level.read_text()) < 1


needs_perf = pytest.mark.skipif(bool(refusal()), reason=refusal() or "none")


@pytest.fixture
def busy() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", BUSY])
    yield process
    process.kill()
    process.wait()


@contextmanager
def services(folder: Path) -> Iterator[tuple[Daemon, list[Any]]]:
    """Run `stretto traced` and `stretto probes`; yield the first, and what is closed at the end."""
    with closing_all() as opened:
        daemon = Daemon(folder)
        opened.append(daemon)
        probes = Process(
            *[sys.executable, "-m", "stretto", "probes"],
            env=daemon_environment(folder),
            stderr=subprocess.PIPE,
        )
        opened.append(probes)
        probes.line("stderr")
        yield daemon, opened


def record(folder: Path, config: PerfEventConfig, *, seconds: float = 1.0) -> bytes:
    """Record a session with `linux.perf`."""
    with services(folder) as (daemon, opened):
        consumer = daemon.consumer()
        opened.append(consumer)
        events: list[Any] = []
        source = DataSourceConfig(name="linux.perf", perf_event_config=config)
        consumer.enable(
            TraceConfig(
                buffers=[TraceConfig.BufferConfig(size_kb=16384)],
                data_sources=[TraceConfig.DataSource(config=source)],
            )
        )
        consumer.endpoint.observe_events(2, events.append)
        consumer.wait(lambda: any(event.all_data_sources_started for event in events))
        time.sleep(seconds)  # sleep: samples are taken meanwhile
        consumer.stop()
        return bytes(consumer.read())


@needs_perf
def test_busy_program_is_sampled_with_its_functions(
    tmp_path: Path, busy: subprocess.Popen[bytes]
) -> None:
    scope = PerfEventConfig.Scope(target_pid=[busy.pid])
    stacks = Stacks(kernel_frames=True, scope=scope)
    config = PerfEventConfig(timebase=Timebase(frequency=500), callstack_sampling=stacks)
    with TraceProcessor(record(tmp_path, config)) as trace:
        (samples, cpus) = trace.query(
            "select count(*), count(distinct cpu) from perf_sample join thread using (utid) "
            f"where tid = {busy.pid} and callsite_id is not null"
        ).fetchall()[0]
        files = {
            row[0]
            for row in trace.query(
                "select m.name from perf_sample s "
                "join stack_profile_callsite c on s.callsite_id = c.id "
                "join stack_profile_frame f on c.frame_id = f.id "
                "join stack_profile_mapping m on f.mapping = m.id where m.build_id != ''"
            ).fetchall()
        }
        others = trace.query(
            "select count(*) from perf_sample join thread using (utid) "
            f"where tid != {busy.pid} and callsite_id is not null"
        ).fetchall()[0][0]
        (name,) = trace.query(f"select name from process where pid = {busy.pid}").fetchall()[0]
    assert samples > 20
    assert cpus >= 1
    assert any("crypto" in file or "sha2" in file or "python" in file for file in files)
    assert others == 0
    assert name == sys.executable


STACKS = """
with recursive calls(sample, call) as (
  select s.id, s.callsite_id from perf_sample s join thread using (utid)
    where tid = {pid} and callsite_id is not null
  union all
  select sample, c.parent_id from calls join stack_profile_callsite c on c.id = call
    where c.parent_id is not null)
select sample, group_concat(f.name, ';') from calls
join stack_profile_callsite c on c.id = call join stack_profile_frame f on f.id = c.frame_id
group by sample
"""
"""Selects the functions of each sample."""


@needs_perf
def test_stacks_are_complete_without_frame_pointers(
    tmp_path: Path, busy: subprocess.Popen[bytes]
) -> None:
    scope = PerfEventConfig.Scope(target_pid=[busy.pid])
    config = PerfEventConfig(
        timebase=Timebase(frequency=500),
        callstack_sampling=Stacks(user_frames=PerfEventConfig.UNWIND_DWARF, scope=scope),
    )
    with TraceProcessor(record(tmp_path, config), engine="sqlite") as trace:
        stacks = [names.split(";") for _, names in trace.query(STACKS.format(pid=busy.pid))]
    assert len(stacks) > 20
    whole = [names for names in stacks if {"_start", "_PyEval_EvalFrameDefault"} <= set(names)]
    assert len(whole) >= 0.98 * len(stacks)


@needs_perf
def test_tracepoint_counts_each_event(tmp_path: Path) -> None:
    try:
        Tracefs("/")
    except TracefsError as error:
        pytest.skip(str(error))
    point = PerfEvents.Tracepoint(name="sched/sched_switch", filter="prev_pid != 0")
    config = PerfEventConfig(timebase=Timebase(period=1, tracepoint=point), target_cpu=[0])
    with TraceProcessor(record(tmp_path, config, seconds=0.2)) as trace:
        ((count, first, last),) = trace.query(
            "select count(*), min(value), max(value) from counter"
        ).fetchall()
    assert first == 1
    assert count == last


@needs_perf
def test_polled_counters_have_no_samples(tmp_path: Path) -> None:
    config = PerfEventConfig(
        timebase=Timebase(poll_period_ms=20, counter=PerfEvents.SW_CONTEXT_SWITCHES)
    )
    with TraceProcessor(record(tmp_path, config, seconds=0.2)) as trace:
        rows = trace.query("select distinct name from counter_track").fetchall()
    assert ("context-switches",) in [tuple(row) for row in rows]


def test_reason_of_a_refusal_is_in_the_trace(tmp_path: Path) -> None:
    config = PerfEventConfig(callstack_sampling=Stacks(user_frames=PerfEventConfig.UNWIND_SKIP))
    with TraceProcessor(record(tmp_path, config, seconds=0)) as trace:
        ((name,),) = trace.query("select name from slice").fetchall()
    assert name == "not recorded: callstack_sampling asks for neither kernel_frames nor user_frames"


@needs_perf
@pytest.mark.skipif(not can_be_another_user(), reason="needs root")
@pytest.mark.skipif(all_may_sample(), reason="kernel.perf_event_paranoid allows it to all users")
def test_other_users_are_told_which_right_is_missing() -> None:
    config = PerfEventConfig(callstack_sampling=Stacks(kernel_frames=True))
    os.seteuid(65534)  # Takes the capabilities of this thread away, until the id is root's again.
    try:
        (_, note) = Probing(Perf, Path("/"), perf_event_config=config).take()
    finally:
        os.seteuid(0)
    assert note.track_event is not None
    assert "need root or CAP_PERFMON" in note.track_event.name


@needs_perf
def test_records_that_the_ring_loses_are_counted(tmp_path: Path) -> None:
    config = PerfEventConfig(
        timebase=Timebase(frequency=2000),
        ring_buffer_pages=1,
        ring_buffer_read_period_ms=300,
        callstack_sampling=Stacks(kernel_frames=True),
    )
    with TraceProcessor(record(tmp_path, config)) as trace:
        ((lost,),) = trace.query(
            "select sum(value) from stats where name = 'perf_cpu_lost_records'"
        ).fetchall()
    assert lost > 0


def has_tracefs() -> bool:
    try:
        Tracefs("/")
    except TracefsError:
        return False
    return True


@pytest.mark.thorough
@needs_perf
def test_recipe_of_a_noisy_neighbour(tmp_path: Path) -> None:
    recipe = ROOT / "examples" / "recipes" / "noisy_neighbour"
    trace = tmp_path / "t.pftrace"
    command = [sys.executable, "-m", "stretto", "record", "--system", "--config", f"{recipe}.pbtxt"]
    with services(tmp_path):
        subprocess.run(
            [*command, "-o", str(trace), f"{recipe}.py"],
            env=daemon_environment(tmp_path),
            check=True,
        )
    with TraceProcessor(str(trace)) as processor:
        ((mine, others),) = processor.query(SAMPLES_OF_RECIPE).fetchall()
        waits = processor.query(WAITS_FOR_CPU).fetchall()
    assert others > mine > 0
    if has_tracefs():
        assert len(waits) > 5
        assert sum(runnable for _, runnable in waits) > sum(duration for duration, _ in waits) / 2


@needs_perf
def test_events_of_one_cpu_are_in_the_order_of_time() -> None:
    sampler = _native.PerfSampler(os.cpu_count() or 1, True, True, 64, 1000, 0)
    for cpu in os.sched_getaffinity(0):
        sampler.open(cpu, CPU_CLOCK, 1000, 0, time.CLOCK_MONOTONIC)
    sampler.enable(True)
    end = time.monotonic() + 0.1
    while time.monotonic() < end:
        pass
    sampler.enable(False)
    sampler.read()
    while (stop := sampler.next()) is not None:
        if stop[0] == "thread":
            sampler.decide(stop[1], False)
    times = [TracePacket.decode(packet).timestamp for packet in sampler.take()[0]]
    sampler.close()
    assert len(times) > 10
    assert times == sorted(times)
    with pytest.raises(ValueError, match="closed"):
        sampler.read()
