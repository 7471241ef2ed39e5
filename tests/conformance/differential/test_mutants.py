"""Differential fuzzing finds each mutant: a service built with one deliberate mistake.

Each mutant is built and installed into a folder, which takes some seconds. So these tests
run only if the environment variable STRETTO_MUTANTS is set.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.conformance.differential import services
from tests.conformance.differential.compare import Pair
from tests.conformance.differential.connection import DisconnectedError
from tests.conformance.differential.generator import Generator
from tests.conformance.differential.mutants import MUTANTS, Mutant
from tests.support import newer_debian
from tests.support.sources import ROOT

if TYPE_CHECKING:
    from pathlib import Path

SEQUENCES = 2000

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.once,
    pytest.mark.skipif("STRETTO_MUTANTS" not in os.environ, reason="set STRETTO_MUTANTS=1"),
]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project's sources, into which mistakes are written."""
    if reason := newer_debian.missing():
        pytest.skip(reason)
    copy = tmp_path_factory.mktemp("mutants") / "sources"
    ignored = shutil.ignore_patterns("build", ".git", "__pycache__", ".*_cache", "tests")
    shutil.copytree(ROOT, copy, ignore=ignored)
    return copy


def install(sources: Path, target: Path) -> None:
    """Install the sources; compile only files that changed since the last mutant."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps"]
    options = ["--target", str(target), "-C", f"build-dir={sources.parent / 'cmake'}"]
    done = subprocess.run([*pip, *options, str(sources)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def first_difference(pair: Pair) -> list[str]:
    for seed in range(SEQUENCES):
        try:
            differences = pair.run(Generator(seed).make())
        except DisconnectedError as error:
            return [f"a service doesn't answer: {error}"]
        if differences:
            return differences
    return []


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_differential_fuzzing_finds_the_mutant(
    mutant: Mutant, sources: Path, tmp_path: Path
) -> None:
    file = sources / mutant.file
    original = file.read_text()
    assert original.count(mutant.text) == 1
    file.write_text(original.replace(mutant.text, mutant.mistake))
    try:
        install(sources, tmp_path / "package")
    finally:
        file.write_text(original)
    with (
        services.ours(tmp_path / "o", PYTHONPATH=str(tmp_path / "package")) as ours,
        services.perfetto(tmp_path / "p") as theirs,
    ):
        assert first_difference(Pair(ours, theirs))
