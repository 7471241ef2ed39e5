"""Samples are counted by thread and function, with the error of their shares."""

from __future__ import annotations

import pytest

from stretto.analysis.sample_totals import SampledFunction, sampled_threads, sampling_error
from stretto.analysis.trace_tables import import_trace
from stretto.protos.trace import (
    Callstack,
    Frame,
    InternedData,
    InternedString,
    Mapping,
    PerfSample,
    ProcessTree,
    Trace,
    TracePacket,
)

NAMES = ["main", "load", "read", "parse"]
STACKS = [(1, 2, 3), (1, 4), (1, 2, 1)]
HITS = [(1, 3), (2, 1), (3, 2)]
"""The number of each stack, and how often the main thread was found in it."""


def sampled() -> bytes:
    """Return a trace of a thread with six samples, and of another one with one."""
    data = InternedData(
        function_names=[InternedString(iid=i, str=n.encode()) for i, n in enumerate(NAMES, 1)],
        mapping_paths=[InternedString(iid=1, str=b"/srv/shop.py")],
        mappings=[Mapping(iid=1, path_string_ids=[1])],
        frames=[Frame(iid=i, function_name_id=i, mapping_id=1) for i in range(1, len(NAMES) + 1)],
        callstacks=[Callstack(iid=i, frame_ids=stack) for i, stack in enumerate(STACKS, 1)],
    )
    tree = ProcessTree(
        processes=[ProcessTree.Process(pid=7, cmdline=["shop.py"])],
        threads=[
            ProcessTree.Thread(tid=7, tgid=7, name="MainThread"),
            ProcessTree.Thread(tid=8, tgid=7, name="loader"),
        ],
    )
    first = TracePacket(
        trusted_packet_sequence_id=1, sequence_flags=1, timestamp=1, process_tree=tree
    )
    first.interned_data = data
    taken = [(7, stack) for stack, count in HITS for _ in range(count)] + [(8, 1)]
    samples = [
        TracePacket(
            trusted_packet_sequence_id=1,
            sequence_flags=2,
            timestamp=10 + at,
            perf_sample=PerfSample(pid=7, tid=tid, callstack_iid=stack),
        )
        for at, (tid, stack) in enumerate(taken)
    ]
    skipped = PerfSample(
        pid=7, tid=7, sample_skipped_reason=PerfSample.SampleSkipReason.PROFILER_SKIP_UNWIND_STAGE
    )
    last = TracePacket(trusted_packet_sequence_id=1, timestamp=99, perf_sample=skipped)
    return Trace(packet=[first, *samples, last]).encode()


def test_functions_of_each_thread_have_self_and_total() -> None:
    main, loader = sampled_threads(import_trace(sampled()))
    assert (main.process, main.name, main.samples) == ("shop.py", "MainThread", 6)
    assert main.functions == [
        SampledFunction("read", "/srv/shop.py", 3, 3),
        SampledFunction("main", "/srv/shop.py", 2, 6),  # Recursion counts once.
        SampledFunction("parse", "/srv/shop.py", 1, 1),
        SampledFunction("load", "/srv/shop.py", 0, 5),
    ]
    assert (loader.name, loader.samples) == ("loader", 1)


def test_trace_without_samples_has_no_sampled_threads() -> None:
    assert sampled_threads(import_trace(Trace().encode())) == []


def test_error_of_a_share_is_that_of_wilsons_interval() -> None:
    # Of 10 samples, 5 hits: Wilson's interval is 0.2366 to 0.7634.
    assert sampling_error(5, 10) == pytest.approx((0.7634 - 0.2366) / 2, abs=1e-4)
    assert 0 < sampling_error(10, 10) < 0.15
    assert sampling_error(500, 1000) < sampling_error(5, 10)
    assert sampling_error(0, 0) == 0
