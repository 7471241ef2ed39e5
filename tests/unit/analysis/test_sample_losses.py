"""Statistics of a trace show which of its events are missing."""

from __future__ import annotations

import pytest

from stretto.analysis.sample_losses import sample_losses
from stretto.analysis.trace_tables import import_trace, statistics
from stretto.protos.trace import FtraceEventBundle, Trace, TracePacket
from tests.support.sample_packets import FAST, every, samples, trace_of

WHERE = "of the kernel are missing"


@pytest.mark.parametrize(
    ("counts", "lost"),
    [
        ({"ftrace_cpu_overrun_delta": 7}, []),
        ({"ftrace_cpu_has_data_loss": 1}, ["events"]),
        ({"ftrace_cpu_has_data_loss": 2}, ["events of 2 CPUs"]),
        (
            {"ftrace_cpu_has_data_loss": 2, "ftrace_cpu_overrun_delta": 1228821},
            ["1,228,821 events"],
        ),
    ],
)
def test_events_of_the_kernel_that_are_missing_are_counted(
    counts: dict[str, int], lost: list[str]
) -> None:
    importer = import_trace(trace_of(samples(every(1000), FAST, 1, first=10)))
    found = sample_losses(importer, counts, has_events=False)
    assert [text.partition(f" {WHERE}")[0] for text in found] == lost


def test_bundle_with_lost_events_sets_the_statistic() -> None:
    bundle = FtraceEventBundle(cpu=1, lost_events=True)
    importer = import_trace(Trace(packet=[TracePacket(ftrace_events=bundle)]).encode())
    (text,) = sample_losses(importer, statistics(importer), has_events=False)
    assert WHERE in text
