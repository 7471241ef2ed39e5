"""Addresses of the machine's tracing service."""

from __future__ import annotations

import pytest

from stretto.base import socket_names


@pytest.fixture(autouse=True)
def bare(monkeypatch, tmp_path):
    monkeypatch.delenv("PERFETTO_PRODUCER_SOCK_NAME", raising=False)
    monkeypatch.delenv("PERFETTO_CONSUMER_SOCK_NAME", raising=False)
    monkeypatch.setattr(socket_names, "SYSTEM_FOLDER", str(tmp_path / "perfetto"))


def test_default_paths_are_in_tmp_if_the_system_folder_is_missing():
    assert socket_names.producer_socket() == "/tmp/perfetto-producer"
    assert socket_names.producer_sockets() == ["/tmp/perfetto-producer"]
    assert socket_names.consumer_socket() == "/tmp/perfetto-consumer"


def test_default_paths_are_in_the_system_folder_if_it_exists(tmp_path):
    folder = tmp_path / "perfetto"
    folder.mkdir()
    assert socket_names.producer_socket() == f"{folder}/traced-producer.sock"
    assert socket_names.consumer_socket() == f"{folder}/traced-consumer.sock"


def test_variables_override_the_default_paths(monkeypatch):
    monkeypatch.setenv("PERFETTO_PRODUCER_SOCK_NAME", "@one,/two,")
    monkeypatch.setenv("PERFETTO_CONSUMER_SOCK_NAME", "@three")
    assert socket_names.producer_sockets() == ["@one", "/two"]
    assert socket_names.producer_socket() == "@one,/two,"
    assert socket_names.consumer_socket() == "@three"


def test_empty_variable_is_ignored(monkeypatch):
    monkeypatch.setenv("PERFETTO_PRODUCER_SOCK_NAME", "")
    assert socket_names.producer_socket() == "/tmp/perfetto-producer"
