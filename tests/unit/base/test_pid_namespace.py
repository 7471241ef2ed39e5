"""Whether a process is in the initial PID namespace."""

from __future__ import annotations

from pathlib import Path

import pytest

from stretto.base import pid_namespace


@pytest.mark.parametrize(
    ("target", "initial"), [("pid:[4026531836]", True), ("pid:[4026532178]", False)]
)
def test_namespace_is_told_by_its_inode(tmp_path: Path, target: str, initial: bool) -> None:
    (tmp_path / "self/ns").mkdir(parents=True)
    (tmp_path / "self/ns/pid").symlink_to(target)
    assert pid_namespace.is_initial(str(tmp_path)) == initial


def test_kernel_without_namespaces_has_one(tmp_path: Path) -> None:
    assert pid_namespace.is_initial(str(tmp_path))
