"""The program's own profile function gets the same events during function tracing."""

from __future__ import annotations

import cProfile
import functools
import pstats
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from tests.support.call_slices import recorded

ProfileEvents = list[tuple[str, str, str]]

setprofile_of_before = sys.setprofile


def leaf() -> None:
    len("x")


def made(told: ProfileEvents) -> Callable[[FrameType, str, Any], None]:
    def hook(frame: FrameType, event: str, argument: Any) -> None:
        name = argument.__name__ if event.startswith("c_") else ""
        told.append((event, frame.f_code.co_name, name))

    return hook


def sets_and_clears(told: ProfileEvents) -> None:
    for _ in range(3):
        sys.setprofile(made(told))
        leaf()
        sys.setprofile(None)


def replaces_its_own(told: ProfileEvents) -> None:
    sys.setprofile(made(told))
    sys.setprofile(made(told))
    leaf()
    sys.setprofile(None)


def sets_again_what_it_has(told: ProfileEvents) -> None:
    sys.setprofile(made(told))
    sys.setprofile(sys.getprofile())
    leaf()
    sys.setprofile(None)


def sets_by_a_name_from_before(told: ProfileEvents) -> None:
    setprofile_of_before(made(told))
    leaf()
    setprofile_of_before(None)


def sets_from_c(told: ProfileEvents) -> None:
    list(map(sys.setprofile, [made(told)]))
    leaf()
    functools.partial(sys.setprofile, None)()


def sets_in_a_function_that_returns(told: ProfileEvents) -> None:
    def start() -> None:
        sys.setprofile(made(told))

    start()
    leaf()
    sys.setprofile(None)


def sets_wrongly(told: ProfileEvents) -> None:
    sys.setprofile(made(told))
    with pytest.raises(TypeError):
        sys.setprofile()  # type: ignore[call-arg]
    sys.setprofile(None)


def profiles_a_thread(told: ProfileEvents) -> None:
    threading.setprofile(made(told))
    try:
        thread = threading.Thread(target=leaf)
        thread.start()
        thread.join()
    finally:
        threading.setprofile(None)  # type: ignore[arg-type]  # as documented


def counts(stats: pstats.Stats) -> ProfileEvents:
    table = stats.stats  # type: ignore[attr-defined]
    return sorted((name, str(calls), "") for (*_, name), (calls, *_) in table.items())


def runs_cprofile(told: ProfileEvents) -> None:
    tool = cProfile.Profile()
    tool.enable()
    leaf()
    tool.disable()
    told += counts(pstats.Stats(tool))


def runs_profile(told: ProfileEvents) -> None:
    # CPython 3.15 deprecates this module.
    import profile

    tool = profile.Profile()
    tool.runcall(leaf)
    told += counts(pstats.Stats(tool))


PROGRAMS = [
    sets_and_clears,
    replaces_its_own,
    sets_again_what_it_has,
    sets_by_a_name_from_before,
    sets_from_c,
    sets_in_a_function_that_returns,
    sets_wrongly,
    profiles_a_thread,
    runs_cprofile,
    pytest.param(
        runs_profile,
        marks=pytest.mark.skipif(
            sys.version_info >= (3, 12), reason="Profile.runcall fails by itself on CPython 3.12"
        ),
    ),
]


@pytest.mark.usefixtures("function_options")
@pytest.mark.parametrize("program", PROGRAMS)
def test_profile_function_gets_the_same_events_during_function_tracing(
    program: Callable[[ProfileEvents], None],
) -> None:
    bare: ProfileEvents = []
    told: ProfileEvents = []
    # From CPython 3.12 on, code that was profiled once has more events.
    program([])
    program(bare)
    with recorded("python.functions"):
        program(told)
    assert told == bare
    assert told


@pytest.mark.usefixtures("function_options")
def test_sys_setprofile_looks_unchanged_during_function_tracing() -> None:
    before = (sys.setprofile, sys.setprofile.__doc__, repr(sys.setprofile))
    with recorded("python.functions"):
        assert (sys.setprofile, sys.setprofile.__doc__, repr(sys.setprofile)) == before
    assert sys.setprofile is setprofile_of_before
