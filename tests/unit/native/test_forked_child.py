"""The native work of a forked child: it postpones as planned, and its end hides our modules."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import os, sys
import stretto
from stretto import _native
from stretto.client import postponed

done = []
category = stretto.Category("shop")

def plan(slot, *hooks):
    _native.plan_child(slot, 60_000, lambda: done.append("run"), hooks, lambda: done.append("all"))
"""


def run(text: str) -> str:
    command = [sys.executable, "-W", "error", "-c", PROGRAM + text]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert not done.stderr
    return done.stdout


def test_child_postpones_as_planned() -> None:
    text = """
plan(0, lambda: done.append("hook"))
category._set_slot(0, True)
_native.begin_child()
print(done, _native.is_postponed(), category.enabled)
_native.drop_call()
"""
    assert run(text) == "['hook'] True True\n"


def test_category_of_the_planned_slot_moves_to_the_first_slot() -> None:
    text = """
plan(2)
category._set_slot(2, True)
_native.begin_child()
category._set_slot(0, False)
print(done, category.enabled)
"""
    assert run(text) == "[] False\n"


def test_python_does_all_if_nothing_is_postponed() -> None:
    assert run("plan(None); _native.begin_child(); print(done)") == "['all']\n"


def test_python_does_all_if_a_category_is_enabled_in_another_slot() -> None:
    text = """
plan(0)
category._set_slot(1, True)
_native.begin_child()
print(done, _native.is_postponed(), category.enabled)
"""
    assert run(text) == "['all'] False True\n"


def test_process_that_waits_ends_without_its_work() -> None:
    text = """
category._set_slot(0, True)
_native.set_postponed(True)
end = lambda: done.append("otherwise")
_native.end_process(lambda: done.append("silence"), frozenset({"select"}), end)
print(done, _native.is_postponed(), category.enabled)
print({name for name, module in sys.modules.items() if module is None})
"""
    [first, second] = run("import select\n" + text).splitlines()
    assert first == "['silence'] False False"
    hidden = set(eval(second))
    assert {"stretto", "stretto._native", "select"} <= hidden
    assert not {name for name in hidden if not name.startswith("stretto") and name != "select"}


def test_process_that_does_not_wait_ends_otherwise() -> None:
    text = """
_native.end_process(lambda: 1 / 0, frozenset(), lambda: done.append("otherwise"))
print(done, sys.modules["stretto"] is stretto)
"""
    assert run(text) == "['otherwise'] True\n"


def test_delayed_call_is_cancelled_at_the_end_of_a_process_that_does_not_wait() -> None:
    """The thread would call into an interpreter that ends."""
    text = """
_native.call_after(100, lambda: done.append("called"))
_native.end_process(lambda: None, frozenset(), lambda: done.append("otherwise"))
while len(os.listdir("/proc/self/task")) > 1:
    os.sched_yield()
print(done)
"""
    assert run(text) == "['otherwise']\n"


def test_last_error_is_passed_only_if_there_is_one() -> None:
    text = """
_native.call_with_last_error(done.append)
sys.last_value = None
_native.call_with_last_error(done.append)
sys.last_value = KeyError("qty")
_native.call_with_last_error(done.append)
print(done)
"""
    assert run(text) == "[KeyError('qty')]\n"


def test_child_calls_python_code_while_another_thread_has_the_lock() -> None:
    text = """
import threading
held, may_end = threading.Event(), threading.Event()

def hold():
    with postponed._lock:
        held.set()
        may_end.wait()

assert postponed.prepare(print)
thread = threading.Thread(target=hold)
thread.start()
held.wait()
print(postponed.prepare(print))
may_end.set()
thread.join()
print(postponed.prepare(print))
"""
    assert run(text) == "False\nTrue\n"


def test_affinity_of_the_program_stays_after_a_delayed_call() -> None:
    text = """
import threading
before, called = os.sched_getaffinity(0), threading.Event()

def call():
    done.append(os.sched_getaffinity(0) == before)
    called.set()

_native.call_after(0, call)
called.wait()
print(done, os.sched_getaffinity(0) == before)
"""
    assert run(text) == "[True] True\n"
