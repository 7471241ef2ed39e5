"""Errors of system calls are shown by their names."""

from __future__ import annotations

import pytest

from stretto.probes.wait_packets import _error


@pytest.mark.parametrize(
    ("number", "name"), [(4, "EINTR"), (514, "ERESTARTNOHAND"), (4095, "-4095")]
)
def test_error_has_its_name_also_within_the_kernel(number: int, name: str) -> None:
    assert _error(number) == name
