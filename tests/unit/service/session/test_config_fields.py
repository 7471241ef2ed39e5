"""TraceConfig fields that other tests don't use; docs/compat.md lists every field."""

from __future__ import annotations

import pytest

from stretto.protos.config import DataSourceConfig, TraceAttributes, TraceConfig
from stretto.service.session import service_tracing_session
from stretto.service.timers import Timers
from tests.support.service_setup import event, make_config, texts

NAMES_OF_TIMERS = {"duration", "snapshot"}


def config_in_trace(setup, consumer):
    """Return the TraceConfig packet that the consumer reads."""
    (config,) = [p.trace_config for p in setup.read(consumer) if p.has("trace_config")]
    return config


@pytest.mark.parametrize(
    "fields",
    [
        {"notify_traceur": True},
        {"allow_user_build_tracing": True},
        {"persist_trace_across_reboots": True},
        {"experimental_trace_buffer_v2_compaction": True},
        {"statsd_logging": 1},
        {
            "statsd_metadata": TraceConfig.StatsdMetadata(
                triggering_alert_id=1,
                triggering_config_uid=2,
                triggering_config_id=3,
                triggering_subscription_id=4,
            )
        },
        {
            "incident_report_config": TraceConfig.IncidentReportConfig(
                destination_package="p",
                destination_class="c",
                privacy_level=1,
                skip_incidentd=True,
                skip_dropbox=True,
            )
        },
        {
            "android_report_config": TraceConfig.AndroidReportConfig(
                reporter_service_package="p",
                reporter_service_class="c",
                skip_report=True,
                use_pipe_in_framework_for_testing=True,
            )
        },
        {
            "cmd_trace_start_delay": TraceConfig.CmdTraceStartDelay(
                min_delay_ms=1_000_000, max_delay_ms=2_000_000
            )
        },
        {"guardrail_overrides": TraceConfig.GuardrailOverrides(max_upload_per_day_bytes=1)},
        {"activate_triggers": ["name"]},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_ignored_config_fields_are_kept_in_the_config_packet(setup, fields):
    producer = setup.producer("ds")
    consumer = setup.enable(make_config("ds", **fields))
    assert ("start", "ds") in producer.calls
    config = config_in_trace(setup, consumer)
    for name, value in fields.items():
        assert getattr(config, name) == value


def test_trace_attributes_are_kept_in_the_config_packet(setup):
    attributes = TraceAttributes(
        attribute=[
            TraceAttributes.Attribute(key="build", long_value=7),
            TraceAttributes.Attribute(key="branch", string_value="main"),
        ]
    )
    consumer = setup.enable(make_config(trace_attributes=attributes))
    assert config_in_trace(setup, consumer).trace_attributes == attributes


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_experimental_buffer_mode_changes_nothing(setup, mode):
    producer = setup.producer("ds")
    config = make_config("ds")
    config.buffers[0].experimental_mode = mode
    consumer = setup.enable(config)
    setup.write(producer, "data")
    assert texts(setup.read(consumer)) == ["data"]


def test_ring_buffer_keeps_new_packets_and_discard_buffer_keeps_old_packets(setup):
    kept = {}
    for policy in (1, 2):
        producer = setup.producer("ds", page_size_hint=4096)
        config = make_config("ds", size_kb=16)
        config.buffers[0].fill_policy = policy
        consumer = setup.enable(config)
        for number in range(20):
            setup.write(producer, f"{number:2} {'x' * 2000}")
        kept[policy] = [int(text.split()[0]) for text in texts(setup.read(consumer))]
        producer.disconnect()
    assert kept[1][-1] == 19
    assert kept[1][0] > 0
    assert kept[2][0] == 0
    assert kept[2][-1] < 19


class TestSuspendClock:
    """Timers that also count the time during which the machine is suspended."""

    @pytest.fixture
    def counting(self, monkeypatch):
        names = []

        class Recorded(Timers):
            def once_counting_suspend(self, name, delay_ms, task):
                names.append(name)
                super().once_counting_suspend(name, delay_ms, task)

        monkeypatch.setattr(service_tracing_session, "Timers", Recorded)
        return names

    def test_timers_do_not_count_suspension_by_default(self, setup, counting):
        setup.enable(make_config(duration_ms=5000))
        assert counting == []

    def test_duration_counts_suspension_if_configured(self, setup, counting):
        config = make_config(duration_ms=5000, prefer_suspend_clock_for_duration=True)
        consumer = setup.enable(config)
        assert counting == ["duration"]
        setup.advance(4999)
        assert not consumer.disabled
        setup.advance(1)
        assert consumer.disabled == [""]

    def test_snapshot_interval_counts_suspension_if_configured(self, setup, counting):
        builtin = TraceConfig.BuiltinDataSource(prefer_suspend_clock_for_snapshot=True)
        consumer = setup.enable(make_config(builtin_data_sources=builtin))
        setup.read(consumer)
        setup.advance(10_000)
        assert any(packet.has("synchronization_marker") for packet in setup.read(consumer))
        assert counting == ["snapshot", "snapshot"]

    def test_producers_get_the_suspend_clock_flag(self, setup):
        producer = setup.producer("ds")
        setup.enable(make_config("ds", prefer_suspend_clock_for_duration=True))
        assert producer.configs["ds"].prefer_suspend_clock_for_duration


SET_BY_SERVICE = {
    "target_buffer", "target_buffer_name", "trace_duration_ms", "stop_timeout_ms",
    "tracing_session_id", "enable_extra_guardrails", "session_initiator",
    "prefer_suspend_clock_for_duration", "name",
}  # fmt: skip
UNKNOWN = b"\xf8\xff\x0f\x01"
"""An encoded field that no message declares."""


def encoded_value(field):
    """Encode a field: an integer is 1, a text is `text`, a message has one unknown field."""
    if field.tag[0] & 7 == 0:
        return field.tag + b"\x01"
    content = UNKNOWN if field.codec.is_message else b"text"
    return field.tag + bytes([len(content)]) + content


@pytest.mark.parametrize(
    "field",
    [
        field
        for name, field in DataSourceConfig.LAYOUT.by_name.items()
        if name not in SET_BY_SERVICE
    ],
    ids=lambda field: field.name,
)
def test_data_source_config_field_reaches_the_producer_unchanged(setup, field):
    producer = setup.producer("ds")
    config = make_config("ds")
    config.data_sources[0].config = DataSourceConfig.decode(
        DataSourceConfig(name="ds").encode() + encoded_value(field)
    )
    setup.enable(config)
    assert encoded_value(field) in producer.configs["ds"].encode()


def test_data_source_registered_after_the_start_is_started(setup):
    consumer = setup.enable(make_config("later"))
    producer = setup.producer("later")
    setup.run()
    assert ("start", "later") in producer.calls
    producer.writer("later").write(event("x"))
    assert not consumer.disabled
