"""Names and filters of system calls."""

from __future__ import annotations

import pytest

from stretto import _native
from stretto.probes.ftrace_syscalls import event_filter, numbers


@pytest.mark.parametrize(("machine", "number"), [("x86_64", 257), ("aarch64", 56), ("i686", 295)])
def test_numbers_are_those_of_the_architecture(machine: str, number: int) -> None:
    assert numbers(["sys_openat"], machine) == ([number], [])


def test_numbers_are_sorted_and_unknown_names_told() -> None:
    names = ["sys_write", "sys_none", "sys_read", "sys_write", "read"]
    assert numbers(names, "x86_64") == ([0, 1], ["sys_none", "read"])
    assert numbers(["sys_read"], "vax") == ([], ["sys_read"])


def test_filter_is_a_disjunction() -> None:
    assert event_filter([0, 257]) == "id == 0 || id == 257"


def test_machine_must_be_text() -> None:
    with pytest.raises(TypeError):
        _native.syscall_names(None)  # type: ignore[arg-type]
