"""Perfetto's trace processor shows the calls of C functions in which a program waits."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.support.recorded import check_trace, record
from tests.support.timed_program import GAPS

PROGRAM = """\
import csv, os, queue, select, socket, sqlite3, subprocess, sys, threading, time

def later(function, *args):
    threading.Timer(0.4, function, args).start()

def sleeps():
    time.sleep(0.4)  # sleep: a wait to be seen

def acquires():
    lock = threading.Lock()
    lock.acquire()
    later(lock.release)
    lock.acquire()

def enters():
    lock = threading.Lock()
    lock.acquire()
    later(lock.release)
    with lock:
        pass

def selects():
    here, there = socket.socketpair()
    later(there.send, b"x")
    select.select([here], [], [])

def polls():
    here, there = socket.socketpair()
    later(there.send, b"x")
    with select.epoll() as epoll:
        epoll.register(here, select.EPOLLIN)
        epoll.poll()

def receives():
    here, there = socket.socketpair()
    later(there.send, b"x")
    here.recv(1)

def reads():
    end, other = os.pipe()
    later(os.write, other, b"x\\n")
    with open(end) as file:
        file.readline()

def iterates():
    end, other = os.pipe()
    later(os.write, other, b"x\\n")
    with open(end) as file:
        for line in file:
            break

def iterates_in_a_comprehension():
    end, other = os.pipe()
    later(lambda: (os.write(other, b"x\\n"), os.close(other)))
    with open(end) as file:
        rows = csv.reader(file)
        [row for row in rows]

def waits():
    subprocess.run(["sleep", "0.4"])

def executes():
    one, two = (
        sqlite3.connect("shop.db", isolation_level=None, check_same_thread=False) for _ in "12"
    )
    one.execute("create table orders (id)")
    one.execute("begin immediate")
    later(one.execute, "commit")
    two.execute("insert into orders values (1)")

def gets():
    orders = queue.SimpleQueue()
    later(orders.put, 1)
    orders.get()

def get_order(orders):
    orders.get()

def gets_again():
    orders = queue.SimpleQueue()
    for number in range(2):
        later(orders.put, number)
        get_order(orders)

def computes():
    end = time.monotonic() + 0.4
    while time.monotonic() < end:
        len(str(end))

def finds_short_calls():
    for _ in range(100_000):
        os.stat(".")

for function in (sleeps, acquires, enters, selects, polls, receives, reads, iterates,
                 iterates_in_a_comprehension, waits, executes, gets, gets_again):
    function()
burner = threading.Thread(target=computes)
burner.start()
computes()
burner.join()
finds_short_calls()
"""

CALLS = """
select caller.name, call.name, call.dur, caller.dur,
  extract_arg(call.arg_set_id, 'debug.begins_up_to_ns_earlier')
from slice call left join slice caller on call.parent_id = caller.id
where call.category = 'python.functions' and call.name in ({})
"""
BY_EVENTS = {
    "sleeps": "time.sleep",
    "acquires": "_thread.lock.acquire",
    "selects": "select.select",
    "polls": "select.epoll.poll",
    "receives": "_socket.socket.recv",
    "reads": "_io.TextIOWrapper.readline",
    "subprocess.Popen._try_wait": "posix.waitpid",
    "executes": "sqlite3.Connection.execute",
}
BY_SAMPLES = {
    "enters": "lock.__enter__",
    "iterates": "_io.TextIOWrapper.__next__",
    "iterates_in_a_comprehension": "_csv.reader.__next__",
    "gets": "orders.get",
}
if sys.version_info < (3, 12):  # A comprehension is a function.
    BY_SAMPLES["iterates_in_a_comprehension.<locals>.<listcomp>"] = BY_SAMPLES.pop(
        "iterates_in_a_comprehension"
    )
if sys.version_info >= (3, 14):  # The interpreter reports `with` as a call.
    del BY_SAMPLES["enters"]
    BY_EVENTS["enters"] = "_thread.lock.__enter__"


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("blocking")
    (folder / "shop.py").write_text(PROGRAM)
    done = record(folder / "shop.pftrace", "shop.py", cwd=folder)
    assert done.status == 0, done.stderr
    return done.trace


@pytest.fixture
def trace(oracle: Any, recording: bytes) -> Any:
    return check_trace(oracle, recording)


needs_events = pytest.mark.skipif(
    sys.version_info < (3, 12), reason="CPython 3.11 reports no calls: times are not exact"
)


def longest(trace: Any, caller: str, name: str) -> tuple[int, int, int | None]:
    """Return the durations of a call and of its caller, and how exact the begin is."""
    rows = [row for row in trace.query(CALLS.format(repr(name))) if row[0] == caller]
    assert rows, trace.query("select distinct name from slice where category = 'python.functions'")
    return tuple(max(rows, key=lambda row: row[2])[2:])


@needs_events
@pytest.mark.parametrize("caller", BY_EVENTS)
def test_blocking_call_is_a_slice_with_exact_times(trace: Any, caller: str) -> None:
    if caller.endswith("_try_wait") and not trace.query(
        "select 1 from slice where name = 'subprocess.Popen._try_wait'"
    ):
        pytest.skip("this version of CPython waits for processes by pidfd")
    duration, of_caller, begins_earlier = longest(trace, caller, BY_EVENTS[caller])
    assert 300_000_000 < duration <= of_caller
    assert begins_earlier is None


@pytest.mark.parametrize("caller", BY_SAMPLES)
def test_blocking_call_without_an_event_is_found_by_samples(trace: Any, caller: str) -> None:
    duration, of_caller, begins_earlier = longest(trace, caller, BY_SAMPLES[caller])
    assert 300_000_000 < duration <= of_caller
    assert begins_earlier is not None


def test_calls_of_one_place_have_one_name_if_samples_find_the_first_one(trace: Any) -> None:
    below = "select distinct call.name from slice caller join slice call on call.parent_id"
    condition = "caller.name = 'get_order' and call.category = 'python.functions'"
    found = {name for (name,) in trace.query(f"{below} = caller.id where {condition}")}
    assert found - set(GAPS) == {"orders.get"}


def test_threads_that_wait_for_the_gil_or_a_cpu_have_no_slices_of_c_functions(trace: Any) -> None:
    below = "select call.name from slice caller join slice call on call.parent_id = caller.id"
    found = trace.query(f"{below} where caller.name = 'computes'")
    assert {name for (name,) in found} <= {"garbage collection", *GAPS}


def test_call_site_with_short_calls_is_not_shown(trace: Any) -> None:
    assert trace.query("select count(*) from slice where name = 'posix.stat'") == [(0,)]
