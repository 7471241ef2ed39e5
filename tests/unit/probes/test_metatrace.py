"""`perfetto.metatrace`: what the other data sources do."""

from __future__ import annotations

from _thread import get_native_id
from pathlib import Path

from stretto.probes.metatrace import Metatrace
from stretto.probes.sys_stats import SysStats
from stretto.protos.config import SysStatsConfig
from tests.support.probing import Probing


def test_each_poll_of_another_source_is_a_slice(tmp_path: Path) -> None:
    polls = Probing(SysStats, tmp_path, sys_stats_config=SysStatsConfig(psi_period_ms=100))
    polls.take()
    session = Probing(Metatrace, tmp_path, machine=polls.source.machine)
    times = [packet.timestamp for packet in polls.advance(250)]
    slices = session.take()
    assert [packet.timestamp for packet in slices] == times
    for packet in slices:
        work = packet.perfetto_metatrace
        assert work is not None
        assert (work.event_name, work.thread_id) == ("linux.sys_stats", get_native_id())
        assert work.event_duration_ns >= 0
    session.source.on_stop()
    polls.advance(250)
    assert not session.take()
