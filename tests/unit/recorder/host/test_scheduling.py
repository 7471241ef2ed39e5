"""Scheduling events of the recorded threads, on a fake tracefs."""

from __future__ import annotations

import os
from pathlib import Path

from stretto.probes.tracefs import Folder
from stretto.recorder.host.config import make_config
from stretto.recorder.host.options import RecordingOptions
from stretto.recorder.host.scheduling import ProgramFtrace, make_data_source
from tests.support.fake_tracefs import FakeTracefs, mount
from tests.support.probing import Probing


class FakeFtrace(ProgramFtrace):
    tracefs = FakeTracefs


def test_events_of_the_recorder_and_of_what_it_starts_are_recorded(tmp_path: Path) -> None:
    folder = mount(tmp_path)
    config = make_data_source()
    session = Probing(FakeFtrace, tmp_path, ftrace_config=config.ftrace_config)
    (path,) = (folder / "instances").iterdir()
    instance = Folder(str(path))
    assert instance.read("set_event_pid") == str(os.getpid())
    assert instance.read("options/event-fork") == "1"
    for tid in (70, 71):
        (tmp_path / f"proc/70/task/{tid}").mkdir(parents=True)
    session.source.follow(70)
    # The fake file has the appended text. The kernel adds these ids to its list.
    assert instance.read("set_event_pid") == f"{os.getpid()}70 71"
    session.source.on_stop()
    session.source.follow(70)
    assert any(packet.ftrace_events for packet in session.take())


def test_only_the_option_adds_scheduling() -> None:
    for sched in (False, True):
        config = make_config(RecordingOptions(sched=sched), to_file=True)
        names = [source.config.name for source in config.data_sources if source.config]
        assert ("linux.ftrace" in names) == sched
