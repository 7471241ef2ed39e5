"""What a summary says of the C functions in samples."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from stretto.cli.native_lines import native_lines
from stretto.profilers.sampling.process import CPU
from stretto.profilers.sampling.profile import Profile
from stretto.profilers.sampling.settings import Settings


def profile_with(problem: str = "", **numbers: float) -> Profile:
    """Return a profile of one process with these numbers."""
    profile = Profile(Settings(CPU, 1_000_000, native=True), lambda _packets: None)
    stats = dict.fromkeys(("native", "unstopped", "refused", "paused_ns"), 0)
    stats |= {"samples": 1} | numbers
    samples: Any = SimpleNamespace(pid=7, problem=problem, stats=stats)
    profile._samples.append(samples)
    return profile


def test_cost_of_c_functions_is_said() -> None:
    assert native_lines(profile_with(native=1200, paused_ns=3e6)) == [
        "1,200 samples have C functions; the process was stopped for 3.0 ms"
    ]


def test_reasons_for_missing_c_functions_are_said() -> None:
    _, refused, over, problem = native_lines(
        profile_with("the loop has no name", unstopped=5, refused=3)
    )
    assert refused.startswith("3 samples have none: the kernel refused to stop the thread")
    assert over == (
        "2 samples have none: the thread was not stopped, as stops take at most 5 % of the time"
    )
    assert problem == "the samples of 7 have no C functions: the loop has no name"


def test_process_that_ended_before_its_first_sample_is_no_problem() -> None:
    lines = native_lines(profile_with("the loop has no name", samples=0))
    assert not any("the loop has no name" in line for line in lines)


def test_profile_without_c_functions_says_nothing_of_them() -> None:
    profile = Profile(Settings(CPU, 1_000_000), lambda _packets: None)
    assert native_lines(profile) == []
