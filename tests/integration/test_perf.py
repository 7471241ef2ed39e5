"""`linux.perf` of `stretto probes` on this kernel, with `stretto traced` as its service."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stretto import _native
from stretto.analysis import TraceProcessor
from stretto.probes.tracefs import Tracefs, TracefsError
from stretto.protos.config import DataSourceConfig, PerfEventConfig, PerfEvents, TraceConfig
from stretto.protos.trace import TracePacket
from tests.support.traced import Daemon, Process, closing_all, daemon_environment

pytestmark = pytest.mark.once

Stacks, Timebase = PerfEventConfig.CallstackSampling, PerfEvents.Timebase
BUSY = "import hashlib\nwhile True: hashlib.sha256(bytes(1_000_000))"
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


needs_perf = pytest.mark.skipif(bool(refusal()), reason=refusal() or "none")


@pytest.fixture
def busy() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", BUSY])
    yield process
    process.kill()
    process.wait()


def record(folder: Path, config: PerfEventConfig, *, seconds: float = 1.0) -> bytes:
    """Record a session with `linux.perf`."""
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
    config = PerfEventConfig(callstack_sampling=Stacks(user_frames=PerfEventConfig.UNWIND_DWARF))
    with TraceProcessor(record(tmp_path, config, seconds=0)) as trace:
        ((name,),) = trace.query("select name from slice").fetchall()
    assert name.startswith("not recorded: user_frames: UNWIND_DWARF is not supported")


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
