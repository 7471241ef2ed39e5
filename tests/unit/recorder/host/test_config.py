from __future__ import annotations

import pytest

from stretto.cli.record.arguments import RecordOptions
from stretto.client.track_event.category_config import is_category_enabled
from stretto.protos.config import TraceConfig
from stretto.recorder.host.config import NO_FLUSH, STALL_THEN_DROP, clear_period_ms, make_config
from stretto.service.session.config_validation import check_config


def config(*arguments: str, to_file: bool = True) -> TraceConfig:
    return make_config(RecordOptions([*arguments, "x.py"]).recording, to_file=to_file)


@pytest.mark.parametrize(
    ("arguments", "flushes"),
    [(["--full"], True), (["--auto"], False), (["--full", "--flows"], False)],
)
def test_file_that_may_get_late_events_is_written_without_flushes(arguments, flushes):
    made = config(*arguments)
    assert (made.flush_period_ms <= 1000) == flushes
    assert (made.write_flush_mode == NO_FLUSH) == (not flushes)


@pytest.mark.parametrize(
    "arguments", [("--ring",), ("--auto",), ("--stream", "--max-size", "1mb", "--duration", "3s")]
)
def test_service_accepts_the_config(arguments):
    check_config(config(*arguments), has_fd="--ring" not in arguments)


def test_all_categories_of_programs_and_the_selected_profilers_are_enabled():
    (events, _) = config("--no-gc").data_sources
    enabled = events.config.track_event_config.enabled_categories
    assert "*" in enabled
    assert "python.functions" in enabled
    assert "python.gc" not in enabled


def test_named_categories_are_enabled_despite_their_tags():
    (events, _) = config("--category", "rpc.transport", "--category", "a.b").data_sources
    track_event = events.config.track_event_config
    assert is_category_enabled(track_event, "rpc.transport", ["slow"])
    assert is_category_enabled(track_event, "a.b", ["debug"])
    assert not is_category_enabled(track_event, "b.c", ["debug"])


def test_process_counters_are_a_second_data_source():
    assert [s.config.name for s in config().data_sources] == ["track_event", "linux.process_stats"]
    assert [s.config.name for s in config("--no-counters").data_sources] == ["track_event"]


def test_clear_period_depends_on_the_size_of_the_ring_buffer():
    assert config("--ring").incremental_state_config.clear_period_ms == 512
    assert clear_period_ms(4096) == 20
    assert clear_period_ms(1 << 30) == 1000


def test_streamed_trace_is_written_into_the_file_periodically():
    made = config("--stream", "--max-size", "1mb")
    assert made.write_into_file
    assert made.max_file_size_bytes == 1 << 20
    assert not made.has("incremental_state_config")


@pytest.mark.parametrize(
    ("arguments", "to_file", "policy"),
    [(("--stream",), True, STALL_THEN_DROP), (("--stream",), False, 0), (("--ring",), True, 0)],
)
def test_writers_stall_only_if_the_trace_is_streamed_to_a_file(arguments, to_file, policy):
    source = config(*arguments, to_file=to_file).data_sources[0].config
    assert source.buffer_exhausted_policy == policy


def test_samples_are_a_data_source_instead_of_function_calls():
    made = config("--sample", "1000hz", "--no-counters")
    events, samples = (source.config for source in made.data_sources)
    assert "python.functions" not in events.track_event_config.enabled_categories
    assert samples.name == "python.cpu"
    assert made.write_into_file


def test_samples_have_the_named_data_sources():
    names = ("python.gil", "python.wall")
    given = [word for name in names for word in ("--data-source", name)]
    made = config("--sample", "1000hz", *given, "--no-counters")
    assert {source.config.name for source in made.data_sources} == {"track_event", *names}


def test_waits_in_system_calls_are_written_late_so_there_are_no_flushes():
    made = config("--full", "--io-waits")
    sources = [source.config.name for source in made.data_sources]
    assert "linux.syscall_waits" in sources
    assert made.write_flush_mode == NO_FLUSH
    assert "linux.syscall_waits" not in [
        source.config.name for source in config("--full").data_sources
    ]
