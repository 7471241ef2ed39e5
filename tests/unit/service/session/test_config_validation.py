from __future__ import annotations

import pytest

from stretto.base.errors import ConfigError
from stretto.protos.config import TraceConfig
from stretto.service.session.config_validation import buffer_index, check_config
from tests.support.service_setup import data_source, make_config

DAY_MS = 24 * 3600 * 1000


def refused(config, match, has_fd=False):
    with pytest.raises(ConfigError, match=match):
        check_config(config, has_fd=has_fd)


def test_valid_configs_are_accepted():
    check_config(TraceConfig(), has_fd=False)
    check_config(make_config("ds", buffers=128, duration_ms=7 * DAY_MS), has_fd=False)
    check_config(make_config(write_into_file=True), has_fd=True)


def test_too_long_duration_is_refused():
    refused(make_config(duration_ms=7 * DAY_MS + 1), "duration_ms 604800001 is too long")
    guarded = make_config(duration_ms=DAY_MS + 1, enable_extra_guardrails=True)
    refused(guarded, "at most 86400000")


@pytest.mark.parametrize("size_kb", [0, 1 << 22, (1 << 32) - 1])
def test_invalid_buffer_sizes_are_refused(size_kb):
    refused(make_config(size_kb=size_kb), "Invalid buffer sizes")


def test_unknown_fill_policy_is_refused():
    config = TraceConfig.decode(b"\x0a\x04\x08\x40\x20\x03")
    refused(config, "fill_policy 3 is unknown")


def test_largest_buffer_size_is_accepted():
    check_config(make_config(size_kb=(1 << 22) - 1), has_fd=False)


def test_too_many_buffers_are_refused():
    refused(make_config(buffers=129), "at most 128")


def test_duplicate_buffer_names_are_refused():
    config = make_config(buffers=3)
    config.buffers[0].name = config.buffers[2].name = "same"
    refused(config, "named 'same'")


def test_unknown_target_buffer_name_is_refused():
    config = make_config()
    config.data_sources = [data_source("ds", target_buffer_name="none")]
    refused(config, "'none'")


def test_target_buffer_index_that_contradicts_the_target_buffer_name_is_refused():
    config = make_config(buffers=3)
    config.buffers[2].name = "last"
    for index, good in ((0, True), (1, False), (2, True)):
        config.data_sources = [data_source("ds", target_buffer_name="last", target_buffer=index)]
        if good:
            check_config(config, has_fd=False)
            assert buffer_index(config.data_sources[0].config, config) == 2
        else:
            refused(config, "isn't the buffer named 'last'")


def test_target_buffer_index_out_of_range_is_refused():
    config = make_config("ds")
    config.data_sources[0].config.target_buffer = 1
    refused(config, "targets buffer 1, but the config has 1")
    refused(make_config("ds", buffers=0), "targets buffer 0")


def test_extra_guardrails_limit_buffer_size_and_deferred_start():
    def guarded(**fields):
        return make_config(enable_extra_guardrails=True, **fields)

    check_config(guarded(size_kb=128 * 1024), has_fd=False)
    refused(guarded(deferred_start=True), "deferred_start")
    refused(guarded(size_kb=6), "multiple of 4")
    refused(guarded(size_kb=128 * 1024 + 4), "at most 131072")
    more = TraceConfig.GuardrailOverrides(max_tracing_buffer_size_kb=200 * 1024)
    check_config(guarded(size_kb=200 * 1024, guardrail_overrides=more), has_fd=False)
    less = TraceConfig.GuardrailOverrides(max_tracing_buffer_size_kb=4)
    check_config(guarded(size_kb=128 * 1024, guardrail_overrides=less), has_fd=False)


def test_write_into_file_needs_exactly_one_destination():
    refused(make_config(write_into_file=True), "either output_path or a file descriptor")
    both = make_config(write_into_file=True, output_path="/x")
    refused(both, "not both", has_fd=True)
