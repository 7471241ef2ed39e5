"""The handling of forks.

The child has the parent's memory and none of its threads. The sessions, writers and connections in
this memory belong to the parent, so the child drops them.

Helper threads are stopped before the fork, and restarted in the parent after the fork. Otherwise
CPython 3.12 and later would warn of a second thread. Also, a lock held by a helper thread would
stay held in the child for ever.
"""

from __future__ import annotations

import os
import sys

# Importing `functools` takes longer.
from _functools import partial  # type: ignore[import-not-found]

from stretto import _native
from stretto.client import postponed
from stretto.client.safe_call import call_safely
from stretto.client.tracing import tracing
from stretto.client.track_event import process, slots
from stretto.client.track_event.process_name import call_when_named, count_fork
from stretto.client.track_event.source import TrackEventSource, name_worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

ask_before: list[Callable[[], object]] = []
"""Called in the parent before a fork: ask helper threads to end, without waiting for them."""

before: list[Callable[[], object]] = []
"""Called in the parent before a fork, after those of `ask_before`: stop helper threads."""

after_in_parent: list[Callable[[], object]] = []
"""Called in the parent soon after a fork: start the helper threads again."""

reconnect: dict[str, Callable[[], object]] = {}
"""Functions that connect a child to a recorder, by the name of the backend.

If the recorder's session records only track events, they are called at the child's first event
(`postponed`); until then the child has no helper threads. Otherwise they are called at once."""

when_postponed: list[Callable[[], object]] = []
"""Native functions that are called in a child that connects later, in which the recorder's
categories stay enabled. They raise no exceptions."""

when_connected: list[Callable[[], object]] = []
"""Called in a child after it has connected."""

after_in_child: list[Callable[[], object]] = []
"""Called in the child after its tracing state was reset: connect again if needed."""

_installed: dict[str, object] = {}
"""Has one entry once the hooks are registered: `setdefault` is atomic."""
_stopped: list[int] = []
"""Holds the process id while a fork keeps its helper threads stopped."""

_kept: int | None = None
"""The slot whose categories stay enabled in the child of the latest fork; None if it has none."""


def _run(hooks: list[Callable[[], object]]) -> None:
    for hook in hooks:
        _native.call_untraced(call_safely, hook)


def _stop_helpers() -> None:
    """Call each function of `before`, and those that another thread adds meanwhile.

    One of the functions may wait for a thread that connects. That thread also removes functions,
    which would make a loop over the list skip others.
    """
    _run(ask_before)
    called: list[Callable[[], object]] = []
    while left := [hook for hook in before if hook not in called]:
        called.append(left[0])
        _run(left[:1])


def _before() -> None:
    count_fork()
    stop_threads()


def stop_threads() -> None:
    """Stop the helper threads until a fork is over."""
    global _kept
    postponed.suspend()
    if not postponed.is_waiting():
        _stop_helpers()
    _kept = _slot_to_keep()
    if _kept is not None:
        call_when_named(name_worker)  # Not in the child: its code would copy pages there.
    # A child that has more to do, or whose parent does postponed work just now, runs Python code.
    plain = not after_in_child and postponed.prepare(_connect_again)
    postponed.plan_child(_kept if plain else None, tuple(when_postponed), _after_in_child)


def resume() -> None:
    """Start the helper threads again if a fork has stopped them. Idempotent."""
    # The child inherits the parent's pending calls, which may run before the child's hook.
    if _stopped == [os.getpid()]:
        _stopped.clear()
        postponed.resume()
        if not postponed.is_waiting():
            _run(after_in_parent)


def _after_in_parent() -> None:
    _stopped[:] = [os.getpid()]
    if sys.version_info >= (3, 12):
        _resume_soon(sys._getframe(1))  # noqa: SLF001  # documented for CPython
    else:
        # Python 3.11 doesn't count threads at a fork, so the threads can start at once. No pending
        # call is used: if a pending call adds another one while a profile function is set, Python
        # 3.11 may hang.
        resume()


def _resume_soon(caller: FrameType) -> None:
    # The threads can't be restarted within this hook: CPython counts the threads after all fork
    # hooks, and warns if there are several.
    # The main thread calls `resume` when it has left the instruction that calls os.fork(); if it is
    # blocked, a thread that records an event or waits for a session calls `resume`.
    process.soon.append(resume)
    try:
        _native.call_when_left(caller, caller.f_lasti, resume)
    except RuntimeError:  # The interpreter has too many pending calls.
        return


def _after_in_child() -> None:
    # Called only if the native part can't do this work: see `_native.begin_child`.
    slots.disable_all(_kept)
    if _kept is None:
        _connect_again()
    else:
        postponed.postpone(_connect_again)
    if after_in_child:
        _run(after_in_child)
    if _kept is not None:
        for hook in when_postponed:
            hook()


def _slot_to_keep() -> int | None:
    """Return the slot of the recorder's session.

    Returns None if there is no such session, or if it has further data sources in this process:
    only track events can wait for a connection.
    """
    if postponed.is_waiting():  # The parent is a child that isn't connected yet.
        return 0
    for name in reconnect:
        sources = tracing.sources(name)
        if len(sources) == 1 and isinstance(sources[0], TrackEventSource):
            return sources[0].slot
    return None


def _connect_again() -> None:
    slots.forget_sessions()
    tracing.after_fork_in_child()
    _run([*reconnect.values()])
    slots.release_unused()
    _run(when_connected)


def install() -> None:
    """Register the fork hooks, once."""
    this = object()
    if _installed.setdefault("", this) is this:
        os.register_at_fork(
            before=_before,
            after_in_parent=partial(_native.call_untraced, _after_in_parent),
            after_in_child=_native.begin_child,
        )
