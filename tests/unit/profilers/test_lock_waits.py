"""Waits for locks are slices; free locks, errors and results are as without a recording."""

from __future__ import annotations

import _thread
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import stretto
from stretto.profilers import lock_waits
from tests.support.call_slices import BEGIN, INSTANT, Event, recorded

SHORT_S = 0.002
WAITS = 300
MAKERS = [threading.Lock, threading.RLock, _thread.allocate_lock]


@pytest.fixture(autouse=True)
def installed() -> None:
    lock_waits.install()


def begins(events: list[Event]) -> list[Event]:
    return [event for event in events if event.type == BEGIN]


def take_in_a_thread(lock: threading.Lock) -> int:
    """Take a lock in a thread, which ends; return the kernel's id of the thread."""
    thread = threading.Thread(target=lock.acquire)
    thread.start()
    thread.join()
    assert thread.native_id is not None
    return thread.native_id


@pytest.mark.parametrize("make", MAKERS)
def test_wait_has_the_place_of_the_lock_and_its_holder(make: Callable[[], threading.Lock]) -> None:
    with recorded("python.waits") as result:
        lock = make()
        holder = take_in_a_thread(lock)
        assert not lock.acquire(timeout=SHORT_S)
    wait = begins(result.events)[-1]
    assert wait.name == "wait for lock"
    assert wait.args["held_by_tid"] == holder
    assert wait.args["timed_out"]
    place, _, function = wait.args["made_at"].partition(" ")
    line = test_wait_has_the_place_of_the_lock_and_its_holder.__code__.co_firstlineno + 3
    assert place == f"{__file__}:{line}"
    assert function == "(test_wait_has_the_place_of_the_lock_and_its_holder)"


@pytest.mark.parametrize("make", MAKERS)
def test_lock_that_is_older_than_the_session_is_recorded(
    make: Callable[[], threading.Lock],
) -> None:
    lock = make()
    acquire = lock.acquire
    take_in_a_thread(lock)
    with recorded("python.waits") as result:
        assert not acquire(timeout=SHORT_S)
        assert not acquire(True, SHORT_S)
    waits = begins(result.events)
    assert [wait.name for wait in waits] == ["wait for lock"] * 2
    assert "made_at" not in waits[0].args


def test_thread_that_waits_for_its_own_lock_is_the_holder() -> None:
    with recorded("python.waits") as result:
        lock = threading.Lock()
        lock.acquire()
        assert not lock.acquire(timeout=SHORT_S)
    (wait,) = begins(result.events)
    assert wait.args["held_by_tid"] == threading.get_native_id()


def neighbours(locks: list[threading.Lock]) -> list[threading.Lock]:
    """Return two locks whose addresses begin the search for their slots at the same one."""
    by_hash: dict[int, threading.Lock] = {}
    for lock in locks:
        other = by_hash.setdefault(id(lock) * 0x9E3779B97F4A7C15 % 2**64 >> 51, lock)
        if other is not lock:
            return [other, lock]
    raise AssertionError("more locks than hashes, and none are equal")


def test_locks_with_the_same_hash_have_their_own_holders() -> None:
    first, second = neighbours([threading.Lock() for _ in range(2**13 + 1)])
    with recorded("python.waits") as result:
        holders = [take_in_a_thread(first), take_in_a_thread(second)]
        for lock in (first, second, first):
            assert not lock.acquire(timeout=SHORT_S)
    found = [wait.args["held_by_tid"] for wait in begins(result.events) if "timed_out" in wait.args]
    assert found == [*holders, holders[0]]


def test_wait_for_a_condition_or_a_queue_is_one_for_a_notification() -> None:
    with recorded("python.waits") as result:
        condition = threading.Condition()
        with condition:
            assert not condition.wait(SHORT_S)
        with pytest.raises(queue.Empty):
            queue.Queue[int]().get(timeout=SHORT_S)
    waits = begins(result.events)
    assert [wait.name for wait in waits] == ["wait for notification"] * 2
    first = test_wait_for_a_condition_or_a_queue_is_one_for_a_notification.__code__.co_firstlineno
    places = [wait.args["made_at"].partition(" ")[0] for wait in waits]
    assert places == [f"{__file__}:{first + line}" for line in (4, 6)]


def test_condition_takes_its_reentrant_lock_again() -> None:
    begun, awake, may_end = (threading.Event() for _ in range(3))

    def wait() -> None:
        with condition:
            begun.set()
            condition.wait()
            awake.set()
            may_end.wait()

    with recorded("python.waits") as result:
        condition = threading.Condition()
        waiter = threading.Thread(target=wait)
        waiter.start()
        begun.wait()
        with condition:
            condition.notify()
            time.sleep(SHORT_S)  # sleep: meanwhile the waiter waits for the condition's lock
        awake.wait()
        assert not condition.acquire(timeout=SHORT_S)
        may_end.set()
        waiter.join()
    line = test_condition_takes_its_reentrant_lock_again.__code__.co_firstlineno + 11
    waits = [
        event for event in begins(result.events) if f":{line} " in event.args.get("made_at", "")
    ]
    assert [wait.name for wait in waits] == ["wait for lock"] * 2
    holders = [wait.args["held_by_tid"] for wait in waits]
    assert sorted(holders) == sorted([threading.get_native_id(), waiter.native_id])


def test_place_of_a_lock_is_written_once_and_then_by_an_id() -> None:
    with recorded("python.waits") as result:
        lock = threading.Lock()
        lock.acquire()
        for _ in range(WAITS):
            assert not lock.acquire(timeout=100e-6)
    places = [wait.args["made_at"] for wait in begins(result.events)]
    assert len(places) == WAITS
    assert len(set(places)) == 1
    # The first event in each chunk has the text, and a packet that gives it an id. If names have
    # the same slot of a table by address, more events have it, until the table has grown.
    assert result.trace.count(places.pop().encode()) < WAITS / 2


@pytest.mark.parametrize("size", [250, 400])
def test_long_place_of_a_lock_is_written(size: int) -> None:
    file, names = "f" * size, {"threading": threading}
    with recorded("python.waits") as result:
        exec(compile("lock = threading.Lock()", file, "exec"), names)
        lock: Any = names["lock"]
        lock.acquire()
        for _ in range(3):
            assert not lock.acquire(timeout=SHORT_S)
    places = [wait.args["made_at"] for wait in begins(result.events)]
    assert places == [f"{file}:1 (<module>)"] * 3


def test_arguments_of_acquire_may_be_a_dict_of_any_layout() -> None:
    grown = dict.fromkeys(map(str, range(20)))
    grown.clear()
    grown["".join(["time", "out"])] = SHORT_S
    with recorded("python.waits") as result:
        lock = threading.Lock()
        lock.acquire()
        assert not lock.acquire(**grown)
        assert not lock.acquire(blocking=True, timeout=SHORT_S)
        assert not lock.acquire(blocking=False)
        with pytest.raises(TypeError):
            lock.acquire(unknown=1.0)  # type: ignore[call-arg]
    assert [wait.name for wait in begins(result.events)] == ["wait for lock"] * 2


def test_free_locks_and_locks_of_the_same_thread_have_no_slices() -> None:
    with recorded("python.waits") as result:
        lock, again = threading.Lock(), threading.RLock()
        for _ in range(100):
            with lock, again, again:
                assert lock.locked()
                assert not lock.acquire(False)
        assert not lock.locked()
        assert not again._is_owned()  # type: ignore[attr-defined]
    assert not result.events


def named(arguments: tuple[Any, ...]) -> dict[str, Any]:
    """Return the positional arguments of acquire as named ones."""
    return dict(zip(("blocking", "timeout"), arguments, strict=False))


@pytest.mark.parametrize("arguments", [(), (True,), (True, -1), (True, 10), (True, 0.5)], ids=repr)
@pytest.mark.parametrize("make", MAKERS)
def test_free_lock_that_may_be_waited_for_has_no_slice(
    make: Callable[[], threading.Lock], arguments: tuple[Any, ...]
) -> None:
    with recorded("python.waits") as result:
        lock = make()
        for _ in range(100):
            assert lock.acquire(*arguments)
            lock.release()
            assert lock.acquire(**named(arguments))
            lock.release()
    assert not result.events


@pytest.mark.parametrize(
    "arguments", [(False,), (0,), (False, -1), (True, 0), (True, 0.0)], ids=repr
)
@pytest.mark.parametrize("make", MAKERS)
def test_attempts_to_take_a_lock_have_no_slices(
    make: Callable[[], threading.Lock], arguments: tuple[Any, ...]
) -> None:
    lock = make()
    take_in_a_thread(lock)
    with recorded("python.waits") as result:
        for _ in range(100):
            assert not lock.acquire(*arguments)
            assert not lock.acquire(**named(arguments))
    assert not result.events


def test_reentrant_lock_counts_its_owners_acquires() -> None:
    lock = threading.RLock()
    with recorded("python.waits"):
        assert lock.acquire()
        assert lock.acquire(blocking=False)
        lock.release()
        assert lock._is_owned()  # type: ignore[attr-defined]
        lock.release()
        with pytest.raises(RuntimeError):
            lock.release()


@pytest.mark.parametrize("make", MAKERS)
def test_wrong_arguments_are_refused_as_before(make: Callable[[], threading.Lock]) -> None:
    lock = make()
    with recorded("python.waits"):
        for timeout in (-5, float("nan")):
            with pytest.raises(ValueError):  # noqa: PT011  (the text is CPython's)
                lock.acquire(timeout=timeout)
        for timeout in (1e30, 10**30):
            with pytest.raises(OverflowError):
                lock.acquire(timeout=timeout)
        for arguments in ((1, 2, 3), (True, "1"), (True, None)):
            with pytest.raises(TypeError):
                lock.acquire(*arguments)  # type: ignore[arg-type]
        for unknown in ({"timeout": 1, "blocked": True}, {"BLOCKING": True}):
            with pytest.raises(TypeError):
                lock.acquire(**unknown)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            lock.acquire(True, blocking=True)  # type: ignore[misc]


class InterruptError(Exception):
    """Raised by the signal handler of a test."""


@pytest.fixture
def alarm() -> Iterator[None]:
    def interrupt(*_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        raise InterruptError

    before = signal.signal(signal.SIGALRM, interrupt)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("alarm")
def test_exception_of_a_signal_handler_ends_the_wait() -> None:
    with recorded("python.waits") as result:
        lock = threading.Lock()
        lock.acquire()
        # Again and again: a signal that comes just before the wait doesn't end it.
        signal.setitimer(signal.ITIMER_REAL, SHORT_S, SHORT_S)
        with pytest.raises(InterruptError):
            lock.acquire()
    assert [wait.name for wait in begins(result.events)] == ["wait for lock"]


def run_as(file: str, lock: threading.Lock) -> None:
    """Wait for a lock in code of this file."""
    exec(compile(f"lock.acquire(timeout={SHORT_S})", file, "exec"), {"lock": lock})


def test_waits_of_own_code_are_left_out() -> None:
    lock = threading.Lock()
    lock.acquire()
    with recorded("python.waits") as result:
        run_as(os.path.join(os.path.dirname(stretto.__file__), "client", "code.py"), lock)
        run_as("theirs.py", lock)
    assert len(begins(result.events)) == 1


def test_thread_without_python_code_may_wait() -> None:
    lock, taken = threading.Lock(), threading.Lock()
    with recorded("python.waits") as result:
        lock.acquire()
        _thread.start_new_thread(lock.acquire, (), {"timeout": SHORT_S})
        taken.acquire()
        assert not taken.acquire(timeout=20 * SHORT_S)  # the thread has waited meanwhile
    waits = begins(result.events)
    assert all(wait.name == "wait for lock" for wait in waits)
    assert len(waits) == 2


def test_place_may_be_long() -> None:
    file = "long/" * 60 + "code.py"
    made: dict[str, threading.Lock] = {}
    with recorded("python.waits") as result:
        for _ in range(2):
            exec(compile("import threading\nlock = threading.Lock()", file, "exec"), made)
            made["lock"].acquire()
            assert not made["lock"].acquire(timeout=SHORT_S)
    places = [wait.args["made_at"] for wait in begins(result.events)]
    assert places == [f"{file}:2 (<module>)"] * 2


def test_nothing_is_recorded_after_the_session() -> None:
    with recorded("python.waits"):
        lock = threading.Lock()
    lock.acquire()
    with recorded("python.gc") as result:
        lock.acquire(timeout=SHORT_S)
    assert not [event for event in result.events if event.name.startswith("wait")]


def test_thread_that_takes_the_lock_again_waits_for_the_one_that_got_it() -> None:
    """A thread that was woken owns the lock, and the lock says so only when it has the GIL."""
    measured_ns: list[int] = []

    def work(lock: threading.Lock) -> None:
        for _ in range(10):
            begin = time.perf_counter_ns()
            with lock:
                measured_ns.append(time.perf_counter_ns() - begin)
                time.sleep(0.001)  # sleep: the others wait meanwhile

    with recorded("python.waits") as result:
        lock = threading.Lock()
        threads = [threading.Thread(target=work, args=(lock,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    long_waits = [ns for ns in measured_ns if ns > 1_000_000]
    waits = begins(result.events)
    assert len(waits) >= len(long_waits)
    tids = {thread.native_id for thread in threads}
    assert any(wait.args.get("held_by_tid") in tids for wait in waits)


def test_hand_overs_keep_mutual_exclusion_and_short_waits_are_counted() -> None:
    total = 0
    lock = threading.Lock()

    def add() -> None:
        nonlocal total
        for _ in range(3000):
            with lock:
                total += 1

    with recorded("python.waits") as result:
        threads = [threading.Thread(target=add) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert total == 12000
    short = [event for event in result.events if event.type == INSTANT]
    assert all(event.name == "short waits for locks" for event in short)
    assert all(event.args["total_ns"] < event.args["count"] * 20_000 for event in short)
