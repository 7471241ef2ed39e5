"""Names of processes: their program, and their role in it."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from stretto.client.track_event import process
from stretto.client.track_event import process_name as names
from stretto.client.track_event.process_name import call_when_named, process_name, producer_name
from stretto.protos.trace import TrackDescriptor


@pytest.fixture(autouse=True)
def command_line(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.delattr(sys.modules["__main__"], "__spec__", raising=False)
    for package in ("multiprocessing", "billiard"):
        monkeypatch.delitem(sys.modules, f"{package}.process", raising=False)
    return monkeypatch


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["python", "-m", "uvicorn", "app:app"], "-m uvicorn"),
        (["python", "-muvicorn"], "-m uvicorn"),
        (["python", "-X", "importtime", "-Im", "package.module", "-m", "x"], "-m package.module"),
        (["python", "-Xmy=option", "-Wmodule", "-m", "named"], "-m named"),
    ],
)
def test_process_started_by_python_m_is_named_after_the_module(
    command_line: pytest.MonkeyPatch, words: list[str], name: str
) -> None:
    command_line.setattr(sys, "argv", ["-m", *words[-1:]])
    command_line.setattr(sys, "orig_argv", words)
    assert process_name() == name


@pytest.mark.parametrize(
    ("spec", "name"),
    [("pytest.__main__", "-m pytest"), ("shop.web", "-m shop.web"), ("__main__", "folder.zip")],
)
def test_process_is_named_after_the_module_that_runs(
    command_line: pytest.MonkeyPatch, spec: str, name: str
) -> None:
    main = SimpleNamespace(name=spec)
    command_line.setattr(sys.modules["__main__"], "__spec__", main, raising=False)
    command_line.setattr(sys, "argv", ["/srv/folder.zip"])
    assert process_name() == name


@pytest.mark.parametrize(
    ("script", "name"),
    [
        ("/srv/shop.py", "shop.py"),
        ("/somewhere/uvicorn/__main__.py", "-m uvicorn"),
        ("__main__.py", "__main__.py"),
    ],
)
def test_process_is_named_after_its_script(
    command_line: pytest.MonkeyPatch, script: str, name: str
) -> None:
    command_line.setattr(sys, "argv", [script, "app:app"])
    assert process_name() == name


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("import shop", "python -c import shop"),
        ("import shop\nshop.open()", "python -c import shop shop.open()"),
        ("x" * 41, f"python -c {'x' * 40}…"),
        ("from multiprocessing.resource_tracker import main;main(5)",
         "multiprocessing resource_tracker"),
    ],
)  # fmt: skip
def test_process_is_named_after_its_code_on_the_command_line(
    command_line: pytest.MonkeyPatch, code: str, name: str
) -> None:
    command_line.setattr(sys, "argv", ["-c"])
    command_line.setattr(sys, "orig_argv", ["/usr/bin/python", "-X", "dev", "-Ic", code])
    assert process_name() == name


@pytest.mark.parametrize("script", ["-", ""])
def test_process_without_a_script_is_named_after_the_interpreter(
    command_line: pytest.MonkeyPatch, script: str
) -> None:
    command_line.setattr(sys, "argv", [script])
    command_line.setattr(sys, "orig_argv", ["/usr/bin/python3"])
    assert process_name() == "python3"


def test_spawned_worker_is_named_multiprocessing_until_its_script_is_loaded(
    command_line: pytest.MonkeyPatch,
) -> None:
    command_line.setattr(sys, "argv", ["-c", "--multiprocessing-fork"])
    assert process_name() == "multiprocessing"


@pytest.mark.parametrize(
    ("package", "argv", "worker", "name"),
    [
        ("multiprocessing", ["job.py"], "ForkPoolWorker-1", "job.py ForkPoolWorker-1"),
        ("multiprocessing", ["job.py"], "MainProcess", "job.py"),
        ("billiard", ["celery", "-A", "app", "worker"], "ForkPoolWorker-2",
         "celery worker ForkPoolWorker-2"),
        ("billiard", ["celery", "-A", "app", "worker"], "MainProcess", "celery worker"),
    ],
)  # fmt: skip
def test_worker_has_the_name_that_its_pool_has_given(
    command_line: pytest.MonkeyPatch, package: str, argv: list[str], worker: str, name: str
) -> None:
    module = ModuleType(f"{package}.process")
    module._current_process = SimpleNamespace(name=worker)  # type: ignore[attr-defined]
    command_line.setitem(sys.modules, module.__name__, module)
    command_line.setattr(sys, "argv", argv)
    assert process_name() == name


def test_name_of_a_gunicorn_process_contains_its_role_if_known(
    command_line: pytest.MonkeyPatch,
) -> None:
    command_line.setattr(sys, "argv", ["/srv/bin/gunicorn", "-w", "2", "app:app"])
    assert process_name() == "gunicorn master"
    command_line.setattr(names, "_forks", 1)
    names.count_fork()
    command_line.setattr(names, "_first_pid", 1)  # as if this process were a fork of the master
    names.count_fork()  # the worker's own
    assert process_name() == "gunicorn worker 2"
    command_line.setattr(names, "_forks", 0)
    assert process_name() == "gunicorn worker"
    command_line.setattr(names, "_first_pid", 0)  # 0: this process may be the master or a worker
    assert process_name() == "gunicorn"


def test_function_is_registered_once_for_new_processes(command_line: pytest.MonkeyPatch) -> None:
    registered: list[object] = []
    util = ModuleType("billiard.util")
    util.register_after_fork = lambda *function: registered.append(function)  # type: ignore[attr-defined]
    command_line.setitem(sys.modules, util.__name__, util)
    command_line.setattr(names, "_followed", {"multiprocessing"})
    for _ in range(2):
        call_when_named(print)
    assert registered == [(print, print)]


def test_hidden_arguments_are_in_no_process_descriptor(command_line: pytest.MonkeyPatch) -> None:
    command_line.setattr(names.hidden, "arguments", True)
    command_line.setattr(sys, "argv", ["shop.py", "--password=secret"])
    assert b"secret" not in process.process_tree(1)
    descriptor = TrackDescriptor.decode(process.process_descriptor(1)).process
    assert descriptor is not None
    assert (descriptor.process_name, len(descriptor.cmdline)) == ("shop.py", 1)
    assert descriptor.process_labels == descriptor.cmdline
    assert descriptor.start_timestamp_ns > 0
    command_line.setattr(sys, "argv", ["-c"])
    assert process_name() == "python -c"


def test_name_for_services_omits_the_code_after_the_option_c(
    command_line: pytest.MonkeyPatch,
) -> None:
    command_line.setattr(sys, "argv", ["-c"])
    command_line.setattr(sys, "orig_argv", ["/usr/bin/python", "-c", "secret()"])
    assert producer_name() == "python"
    command_line.setattr(sys, "argv", ["/somewhere/uvicorn/__main__.py"])
    assert producer_name() == "uvicorn"


def test_module_that_is_being_imported_is_not_followed(command_line: pytest.MonkeyPatch) -> None:
    command_line.setitem(sys.modules, "billiard.util", ModuleType("billiard.util"))
    followed = {"multiprocessing"}
    command_line.setattr(names, "_followed", followed)
    call_when_named(print)
    assert followed == {"multiprocessing"}
