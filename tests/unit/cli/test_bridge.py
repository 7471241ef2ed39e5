from __future__ import annotations

import socket

import pytest

from stretto.base.errors import CommandError, StrettoError
from stretto.cli import bridge


@pytest.mark.parametrize("arguments", [["x"], ["--port", "-1"], ["--origin"]])
def test_invalid_arguments_are_refused(arguments: list[str]) -> None:
    with pytest.raises(CommandError, match=r"bridge: .*--help") as caught:
        bridge.run(arguments)
    assert caught.value.exit_code == 2


def test_origin_with_a_path_is_refused() -> None:
    with pytest.raises(StrettoError, match="no origin"):
        bridge.run(["--port", "0", "--origin", "http://localhost:1/path"])


def test_port_in_use_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StrettoError, match="in use"):
            bridge.run(["--port", str(port)])


def test_equal_refusal_messages_are_printed_once_and_different_ones_are_limited(
    capsys: pytest.CaptureFixture[str],
) -> None:
    refusals = bridge._Refusals()
    for turn in range(1000):
        refusals("the same")
        refusals(f"number {turn}")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == bridge.MAX_REFUSALS_SHOWN
    assert lines[0] == "stretto: refused a page: the same"


def test_missing_websockets_library_is_an_error_with_its_install_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bridge, "find_spec", lambda name: None)
    with pytest.raises(CommandError, match=r"websockets is missing: .* 'stretto\[bridge\]'"):
        bridge.run([])
