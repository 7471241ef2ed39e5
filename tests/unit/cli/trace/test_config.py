from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from stretto.base.errors import CommandError
from stretto.cli.trace import config as trace_config
from stretto.cli.trace.options import TraceOptions, parse
from stretto.cli.trace.session import start_delay_ms
from stretto.protos.config import TraceConfig


def session_config(options: TraceOptions) -> TraceConfig:
    return trace_config.session_config(options, trace_config.read_config(options))


def read(tmp_path: Path, text: str, *words: str) -> TraceConfig:
    path = tmp_path / "config"
    path.write_text(text)
    return session_config(parse(["-c", str(path), "--txt", *words]))


def test_command_sets_statsd_fields_and_trace_uuid(tmp_path: Path) -> None:
    text = "statsd_metadata { triggering_alert_id: 9 } duration_ms: 3"
    config = read(tmp_path, text, "-o", "x", "--config-id", "5")
    assert config.statsd_metadata is not None
    assert config.statsd_metadata.triggering_alert_id == 0
    assert config.statsd_metadata.triggering_config_id == 5
    assert config.statsd_logging == TraceConfig.STATSD_LOGGING_DISABLED
    assert config.trace_uuid_msb != 0
    assert read(tmp_path, "trace_uuid_lsb: 3", "-o", "x").trace_uuid_lsb == 3
    assert read(tmp_path, "duration_ms: 1", "-o", "x", "--subscription-id", "4").trace_uuid_lsb == 4


@pytest.mark.parametrize(
    ("text", "words", "complaint"),
    [
        ("nonsense: 1", ["-o", "x"], "config:1:1 error"),
        ("", ["-o", "x"], "is empty"),
        ("duration_ms: 1", [], "-o"),
        ('output_path: "/x"', ["-o", "x"], "output_path"),
        ("duration_ms: 1", ["-o", "x", "--detach", "k"], "write_into_file"),
        ("cmd_trace_start_delay { min_delay_ms: 1 }", ["-o", "x"], "both"),
        ('incident_report_config { destination_package: "x" }', ["-o", "x"], "Android"),
        ('android_report_config { reporter_service_package: "x" }', ["-o", "x"], "Android"),
        ('output_path: "/none"', [], "write_into_file"),
        ('output_path: "/dev/null" write_into_file: true', [], "exists"),
        ("duration_ms: 1", ["-o", "x", "-t", "1s"], "excludes the options of the light mode"),
        ("duration_ms: 1", ["--query"], "take no config"),
        (
            "cmd_trace_start_delay { min_delay_ms: 2 max_delay_ms: 1 }",
            ["-o", "x"],
            "larger than its max_delay_ms",
        ),
        ("duration_ms: 1", ["-o", "x", "--add-attribute", "=3"], "the key is missing"),
    ],
)
def test_contradictory_config_and_options_are_refused(
    tmp_path: Path, text: str, words: list[str], complaint: str
) -> None:
    with pytest.raises(CommandError, match=complaint):
        read(tmp_path, text, *words)


def test_lossy_text_config_ignores_unknown_fields(tmp_path: Path) -> None:
    (tmp_path / "c").write_text("nonsense: 1 duration_ms: 4")
    options = parse(["-c", str(tmp_path / "c"), "--txt-lossy", "-o", "x"])
    assert session_config(options).duration_ms == 4


def test_text_config_without_the_option_txt_is_refused_with_advice(tmp_path: Path) -> None:
    (tmp_path / "c").write_text("duration_ms: 4")
    with pytest.raises(CommandError, match="add --txt"):
        session_config(parse(["-c", str(tmp_path / "c"), "-o", "x"]))
    with pytest.raises(CommandError, match="can't read"):
        session_config(parse(["-c", str(tmp_path / "none"), "-o", "x"]))


def test_binary_config_is_read_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    class Input:
        buffer = io.BytesIO(TraceConfig(duration_ms=8).encode())

    monkeypatch.setattr(sys, "stdin", Input)
    assert session_config(parse(["-c", "-", "-o", "x"])).duration_ms == 8


def test_colon_selects_a_builtin_config_by_name() -> None:
    assert session_config(parse(["-c", ":test", "-o", "x"])).duration_ms == 2000


def test_start_delay_is_between_its_limits() -> None:
    delay = TraceConfig.CmdTraceStartDelay(min_delay_ms=5, max_delay_ms=7)
    drawn = {start_delay_ms(TraceConfig(cmd_trace_start_delay=delay)) for _ in range(200)}
    assert drawn == {5, 6, 7}
    assert start_delay_ms(TraceConfig()) == 0
