"""The TraceConfig of a session: read, completed by options, and checked.

Source: docs/formats/command_line.md, "Flags that exclude each other", "Changes to the config".
"""

from __future__ import annotations

import os
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from stretto.base.errors import CommandError, DecodeError
from stretto.cli.trace.light_mode import light_config
from stretto.protos.config import DataSourceConfig, FtraceConfig, TraceAttributes, TraceConfig
from stretto.protozero.text_format import TextFormatError, parse_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stretto.cli.trace.options import TraceOptions

TEST_CONFIG = ":test"
TEST_EVENTS = (
    "sched/sched_switch", "power/cpu_idle", "power/cpu_frequency", "power/gpu_frequency",
)  # fmt: skip
TEST_DURATION_MS = 2000
TEST_BUFFER_KB = 4096


def read_config(options: TraceOptions) -> bytes:
    """Return the contents of the file of -c; empty without -c.

    Raises:
        CommandError: the file can't be read, or the options don't allow a config.
    """
    data = b"" if options.config is None else _read(options.config)
    if data and options.light:
        raise CommandError("trace: -c excludes the options of the light mode.")
    if data and not options.takes_config:
        raise CommandError("trace: these options take no config: leave -c out.")
    return data


def session_config(options: TraceOptions, data: bytes) -> TraceConfig:
    """Return the config of the session for these options.

    Args:
        options: the options of the command line.
        data: the result of `read_config`.

    Raises:
        CommandError: the config is wrong, or contradicts the options.
    """
    if options.light:
        config = light_config(
            time=options.time,
            buffer=options.buffer,
            size=options.size,
            apps=options.app,
            names=options.events,
            categories=options.category,
        )
    else:
        config = _named_config(options.config or "", data, options)
    _complete(config, options)
    _check(config, options)
    return config


def _read(name: str) -> bytes:
    if name == TEST_CONFIG:
        return _test_config().encode()
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise CommandError(f"trace: can't read the config {name}: {error.strerror}.") from error


def _test_config() -> TraceConfig:
    ftrace = FtraceConfig(ftrace_events=list(TEST_EVENTS))
    source = DataSourceConfig(name="linux.ftrace", target_buffer=0, ftrace_config=ftrace)
    return TraceConfig(
        duration_ms=TEST_DURATION_MS,
        buffers=[TraceConfig.BufferConfig(size_kb=TEST_BUFFER_KB)],
        data_sources=[TraceConfig.DataSource(config=source)],
    )


def _named_config(name: str, data: bytes, options: TraceOptions) -> TraceConfig:
    shown = "standard input" if name == "-" else name
    if not data:
        raise CommandError(f"trace: the config in {shown} is empty: say what to record.")
    if (options.txt or options.txt_lossy) and name != TEST_CONFIG:
        return _parse(data, shown, lossy=options.txt_lossy)
    try:
        return TraceConfig.decode(data)
    except DecodeError as error:
        hint = " It looks like text: add --txt." * _is_text(data)
        raise CommandError(
            f"trace: {shown} isn't an encoded TraceConfig: {error}.{hint}"
        ) from error


def _parse(data: bytes, name: str, *, lossy: bool) -> TraceConfig:
    try:
        return parse_text(data.decode(), TraceConfig, name, allow_unknown_fields=lossy)
    except UnicodeDecodeError:
        raise CommandError(f"trace: {name} isn't text: leave --txt out.") from None
    except TextFormatError as error:
        raise CommandError(f"trace: the config is wrong:\n{error}") from error


def _is_text(data: bytes) -> bool:
    try:
        return all(char.isprintable() or char in "\n\r\t" for char in data.decode())
    except UnicodeDecodeError:
        return False


def _complete(config: TraceConfig, options: TraceOptions) -> None:
    config.statsd_metadata = TraceConfig.StatsdMetadata(
        triggering_alert_id=options.alert_id,
        triggering_config_id=options.config_id,
        triggering_config_uid=options.config_uid,
        triggering_subscription_id=options.subscription_id,
    )
    if not config.trace_uuid_msb and not config.trace_uuid_lsb:
        bits = uuid.uuid4().int
        config.trace_uuid_msb = _signed(bits >> 64)
        config.trace_uuid_lsb = options.subscription_id or _signed(bits & (1 << 64) - 1)
    if config.statsd_logging == TraceConfig.STATSD_LOGGING_UNSPECIFIED:
        config.statsd_logging = TraceConfig.STATSD_LOGGING_DISABLED
    # Extra guardrails apply only to uploaded traces, and this command doesn't upload.
    config.enable_extra_guardrails = False
    _add_attributes(config, options.add_attribute)


def _signed(bits: int) -> int:
    return bits - (1 << 64) if bits >> 63 else bits


def _add_attributes(config: TraceConfig, words: Sequence[str]) -> None:
    for word in words:
        key, _, value = word.partition("=")
        if config.trace_attributes is None:
            config.trace_attributes = TraceAttributes()
        attribute = TraceAttributes.Attribute(key=key, string_value=value)
        config.trace_attributes.attribute.append(attribute)


def _check(config: TraceConfig, options: TraceOptions) -> None:
    for wrong, complaint in [*_upload_complaints(config), *_complaints(config, options)]:
        if wrong:
            raise CommandError(f"trace: {complaint}.")


def _upload_complaints(config: TraceConfig) -> list[tuple[bool, str]]:
    """Return the errors for settings that only Android's command supports."""
    incident, report = config.incident_report_config, config.android_report_config
    wanted = bool(
        (incident and incident.destination_package) or (report and report.reporter_service_package)
    )
    text = "incident_report_config and android_report_config are for Android's --upload"
    return [(wanted, text)]


def _complaints(config: TraceConfig, options: TraceOptions) -> list[tuple[bool, str]]:
    delay, path = config.cmd_trace_start_delay, config.output_path
    records = not config.activate_triggers
    return [
        (
            delay is not None and len(delay.set_fields()) == 1,
            "cmd_trace_start_delay needs both min_delay_ms and max_delay_ms",
        ),
        (bool(path) and options.out is not None, "the config has an output_path: leave -o out"),
        (
            delay is not None and delay.min_delay_ms > delay.max_delay_ms,
            "cmd_trace_start_delay has a min_delay_ms that is larger than its max_delay_ms",
        ),
        (
            bool(path) and os.path.exists(path),
            f"{path} exists, and the service overwrites no file: remove it, or choose another path",
        ),
        (
            records and bool(path) and not config.write_into_file,
            "output_path needs write_into_file in the config: the service writes that file",
        ),
        (records and not path and options.out is None, "give the output file with -o"),
        (
            records and options.detach is not None and not config.write_into_file,
            "--detach needs write_into_file in the config: no consumer reads a detached session",
        ),
    ]
