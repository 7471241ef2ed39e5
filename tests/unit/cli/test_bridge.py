from __future__ import annotations

import socket

import pytest

from stretto.base.errors import CommandError, StrettoError
from stretto.cli import bridge


@pytest.mark.parametrize("arguments", [["x"], ["--port", "-1"], ["--origin"]])
def test_mistakes_on_the_command_line(arguments: list[str]) -> None:
    with pytest.raises(CommandError, match=r"bridge: .*--help") as caught:
        bridge.run(arguments)
    assert caught.value.exit_code == 2


def test_an_origin_that_is_none() -> None:
    with pytest.raises(StrettoError, match="no origin"):
        bridge.run(["--port", "0", "--origin", "http://localhost:1/path"])


def test_a_taken_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StrettoError, match="in use"):
            bridge.run(["--port", str(port)])


def test_refusals_are_told_once_and_not_without_end(capsys: pytest.CaptureFixture[str]) -> None:
    refusals = bridge._Refusals()
    for turn in range(1000):
        refusals("the same")
        refusals(f"number {turn}")
    told = capsys.readouterr().err.splitlines()
    assert len(told) == bridge.MAX_REFUSALS_SHOWN
    assert told[0] == "stretto: refused a page: the same"


def test_missing_library_is_named_with_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge, "find_spec", lambda name: None)
    with pytest.raises(CommandError, match=r"websockets is missing: .* 'stretto\[bridge\]'"):
        bridge.run([])
