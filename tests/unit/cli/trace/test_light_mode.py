from __future__ import annotations

from typing import Any

import pytest

from stretto.base.errors import CommandError
from stretto.cli.trace.light_mode import light_config
from stretto.protozero.text_format import format_text


def config(names: list[str], **given: Any):
    fields = {"time": None, "buffer": None, "size": None, **given}
    return light_config(apps=[], names=names, **fields)


def test_light_mode_has_default_duration_buffer_and_data_sources() -> None:
    made = config(["sched/sched_switch"])
    assert (made.duration_ms, made.buffers[0].size_kb) == (10_000, 32 << 10)
    assert not made.write_into_file
    assert [source.config.name for source in made.data_sources] == [
        "linux.ftrace", "linux.process_stats", "linux.system_info",
    ]  # fmt: skip


def test_only_the_named_categories_of_track_events_are_recorded() -> None:
    source = config([], categories=["shop", "render.*"]).data_sources[0].config
    assert (source.name, source.target_buffer) == ("track_event", 0)
    events = source.track_event_config
    assert events.enabled_categories == ["shop", "render.*"]
    assert events.disabled_categories == ["*"]


def test_duration_and_sizes_are_parsed() -> None:
    made = config(["gfx"], time="2m", buffer="1gb", size="3m")
    assert (made.duration_ms, made.buffers[0].size_kb) == (120_000, 1 << 20)
    assert (made.max_file_size_bytes, made.write_into_file) == (3 << 20, True)


@pytest.mark.parametrize("given", [{"time": "5"}, {"time": "5 s"}, {"buffer": "5s"}, {"size": "x"}])
def test_invalid_duration_and_sizes_are_refused(given: dict[str, str]) -> None:
    with pytest.raises(CommandError, match=f"-{next(iter(given))[0]} "):
        config(["gfx"], **given)


def test_names_on_the_command_line_are_divided_into_events_and_categories() -> None:
    made = config(["gfx", "disk", "power/cpu_idle", "hyp"])
    sources = {source.config.name: source.config for source in made.data_sources}
    assert sources["linux.sys_stats"].sys_stats_config.diskstat_period_ms == 1000
    assert "android.surfaceflinger.frametimeline" in sources
    text = format_text(made)
    assert 'ftrace_events: "hyp/*"' in text
    assert 'instance_name: "hyp"' in text
    ftrace = sources["linux.ftrace"].ftrace_config
    assert (ftrace.ftrace_events, ftrace.symbolize_ksyms) == (["power/cpu_idle"], True)
    assert ftrace.atrace_categories == ["gfx", "disk", "hyp"]
