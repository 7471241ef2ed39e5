"""Interning of strings is correct for every string, and bounded in memory."""

from __future__ import annotations

import os
import threading

import pytest

import stretto
from tests.support.recorded_events import config, record

CATEGORY = stretto.Category("test.interning")


def resident_bytes():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def test_equal_strings_of_different_identity_are_interned_once():
    with record() as recorded:
        for _ in range(100):
            CATEGORY.instant("".join(["na", "me"]), args={"".join(["ke", "y"]): 1})
    assert {event.name for event in recorded.events} == {"name"}
    assert recorded.trace.count(b"name") == 1


def test_strings_at_reused_addresses_are_recorded_correctly():
    """Each string is deleted at once, so that the next string gets the same address."""
    with record() as recorded:
        for number in range(5000):
            CATEGORY.instant(f"name {number}", **{f"key {number}": number})
    assert [event.name for event in recorded.events] == [f"name {n}" for n in range(5000)]
    assert [event.args for event in recorded.events] == [{f"key {n}": n} for n in range(5000)]


def test_name_made_for_one_call_keeps_the_arguments_of_the_call():
    with record() as recorded:
        for number in range(300):
            CATEGORY.instant(f"name {number % 7}", number=number, flow=number + 1)
    shown = [(event.name, event.args, event.flows) for event in recorded.events]
    assert shown == [(f"name {n % 7}", {"number": n}, [n + 1]) for n in range(300)]


def test_code_objects_at_reused_addresses_have_the_right_names():
    with record() as recorded:
        for number in range(1000):
            code = compile(f"def f{number}(): pass", "file", "exec").co_consts[0]
            with CATEGORY._slice_for_code(code):
                pass
            del code
    names = [event.name for event in recorded.events if event.kind == 1]
    assert names == [f"f{number}" for number in range(1000)]


def test_str_subclasses_are_interned_by_value():
    class Name(str):
        __slots__ = ()

        def __eq__(self, other):
            return True

        def __hash__(self):
            return 1

    with record() as recorded:
        for text in ("a", "b", "a"):
            CATEGORY.instant(Name(text), args={Name("k" + text): 1})
    assert [event.name for event in recorded.events] == ["a", "b", "a"]
    assert [list(event.args) for event in recorded.events] == [["ka"], ["kb"], ["ka"]]


@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="ASan keeps freed memory")
def test_memory_does_not_grow_with_distinct_names():
    """Four threads record 300,000 different names."""

    def names(start, count):
        for number in range(start, start + count):
            CATEGORY.instant(f"a name of its own {number}", args={f"key of its own {number}": 1})

    made = config()
    made.buffers[0].size_kb = 1024
    with stretto.TracingSession(made):
        names(0, 50_000)
        resident = resident_bytes()
        threads = [threading.Thread(target=names, args=(n * 10**6, 75_000)) for n in range(1, 5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        names(0, 20_000)
        assert resident_bytes() - resident < 8 << 20
