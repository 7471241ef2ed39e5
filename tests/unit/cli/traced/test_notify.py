"""Notifications of the daemon's state to a service manager."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from stretto.cli.traced.notify import Notifier


@pytest.mark.parametrize("abstract", [False, True])
def test_systemd_is_notified_of_ready_and_stopping(monkeypatch, tmp_path: Path, abstract: bool):
    address = f"@stretto-notify-{os.getpid()}" if abstract else str(tmp_path / "notify")
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind("\0" + address[1:] if abstract else address)
        notifier = Notifier()
        assert "NOTIFY_SOCKET" not in os.environ
        notifier.ready()
        assert manager.recv(100, socket.MSG_DONTWAIT) == b"READY=1"
        notifier.stopping()
        assert manager.recv(100, socket.MSG_DONTWAIT) == b"STOPPING=1"


def test_missing_notify_socket_is_ignored(monkeypatch, tmp_path: Path):
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "nobody"))
    Notifier().ready()


def test_traced_notify_fd_is_written_once_and_closed(monkeypatch):
    read_end, write_end = os.pipe()
    monkeypatch.setenv("TRACED_NOTIFY_FD", str(write_end))
    notifier = Notifier()
    notifier.ready()
    notifier.ready()
    assert os.read(read_end, 100) == b"1"
    assert os.read(read_end, 100) == b""  # The notifier has closed its end of the pipe.
    os.close(read_end)


def test_notifier_does_nothing_without_its_environment_variables(monkeypatch):
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    monkeypatch.delenv("TRACED_NOTIFY_FD", raising=False)
    notifier = Notifier()
    notifier.ready()
    notifier.stopping()
