"""The program's own profile function gets the same events during function tracing."""

from __future__ import annotations

import cProfile
import functools
import pstats
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.support.call_slices import recorded
from tests.support.recorded import alone, record

ProfileEvents = list[tuple[str, str, str]]

setprofile_of_before = sys.setprofile


def leaf() -> None:
    len("x")


def made(recorded_events: ProfileEvents) -> Callable[[FrameType, str, Any], None]:
    def hook(frame: FrameType, event: str, argument: Any) -> None:
        name = argument.__name__ if event.startswith("c_") else ""
        recorded_events.append((event, frame.f_code.co_name, name))

    return hook


def sets_and_clears(recorded_events: ProfileEvents) -> None:
    for _ in range(3):
        sys.setprofile(made(recorded_events))
        leaf()
        sys.setprofile(None)


def replaces_its_own(recorded_events: ProfileEvents) -> None:
    sys.setprofile(made(recorded_events))
    sys.setprofile(made(recorded_events))
    leaf()
    sys.setprofile(None)


def sets_again_what_it_has(recorded_events: ProfileEvents) -> None:
    sys.setprofile(made(recorded_events))
    sys.setprofile(sys.getprofile())
    leaf()
    sys.setprofile(None)


def sets_by_a_name_from_before(recorded_events: ProfileEvents) -> None:
    setprofile_of_before(made(recorded_events))
    leaf()
    setprofile_of_before(None)


def sets_from_c(recorded_events: ProfileEvents) -> None:
    list(map(sys.setprofile, [made(recorded_events)]))
    leaf()
    functools.partial(sys.setprofile, None)()


def sets_in_a_function_that_returns(recorded_events: ProfileEvents) -> None:
    def start() -> None:
        sys.setprofile(made(recorded_events))

    start()
    leaf()
    sys.setprofile(None)


def sets_wrongly(recorded_events: ProfileEvents) -> None:
    sys.setprofile(made(recorded_events))
    with pytest.raises(TypeError):
        sys.setprofile()  # type: ignore[call-arg]
    sys.setprofile(None)


def profiles_a_thread(recorded_events: ProfileEvents) -> None:
    threading.setprofile(made(recorded_events))
    try:
        thread = threading.Thread(target=leaf)
        thread.start()
        thread.join()
    finally:
        threading.setprofile(None)  # type: ignore[arg-type]  # as documented


def counts(stats: pstats.Stats) -> ProfileEvents:
    table = stats.stats  # type: ignore[attr-defined]
    return sorted((name, str(calls), "") for (*_, name), (calls, *_) in table.items())


def runs_cprofile(recorded_events: ProfileEvents) -> None:
    tool = cProfile.Profile()
    tool.enable()
    leaf()
    tool.disable()
    recorded_events += counts(pstats.Stats(tool))


def runs_profile(recorded_events: ProfileEvents) -> None:
    import profile  # CPython 3.15 deprecates the module `profile`.

    tool = profile.Profile()
    tool.runcall(leaf)
    recorded_events += counts(pstats.Stats(tool))


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


@pytest.mark.parametrize("c_functions", [False, True])
@pytest.mark.parametrize("program", PROGRAMS)
def test_profile_function_gets_the_same_events_during_function_tracing(
    program: Callable[[ProfileEvents], None],
    c_functions: bool,
    function_options: Callable[..., None],
) -> None:
    function_options(c_functions=c_functions)
    bare: ProfileEvents = []
    recorded_events: ProfileEvents = []
    program([])  # From CPython 3.12 on, the first profiled run of a code object has fewer events.
    program(bare)
    with recorded("python.functions"):
        program(recorded_events)
    assert recorded_events == bare
    assert recorded_events


@pytest.mark.usefixtures("function_options")
def test_function_tracing_leaves_the_attributes_of_sys_setprofile_unchanged() -> None:
    before = (sys.setprofile, sys.setprofile.__doc__, repr(sys.setprofile))
    with recorded("python.functions"):
        assert (sys.setprofile, sys.setprofile.__doc__, repr(sys.setprofile)) == before
    assert sys.setprofile is setprofile_of_before


SCRIPT = """
import sys, time
events = []
def hook(frame, event, argument):
    events.append((event, frame.f_code.co_name))
def leaf(): len("x")
def main():
    sys.setprofile(hook)
    leaf()
    time.sleep(0)  # sleep: code with this name reports calls of C functions
    sys.setprofile(None)
main()
print(events)
"""


def test_profile_function_gets_the_same_events_under_stretto_record(tmp_path: Path) -> None:
    script = tmp_path / "profiled.py"
    script.write_text(SCRIPT)
    bare = alone(sys.executable, str(script))
    run = record(tmp_path / "t.pftrace", str(script))
    assert bare.stdout == run.stdout
    assert "leaf" in bare.stdout
