"""`stretto.fidl` is another name of `stretto_fidl`."""

from __future__ import annotations

import importlib
import importlib.util
import pickle
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import stretto_fidl

NAMES = [
    found.name.removeprefix("stretto_fidl")
    for found in pkgutil.walk_packages(stretto_fidl.__path__, "stretto_fidl.")
]


def test_stretto_fidl_alias_is_the_package_itself() -> None:
    import stretto.fidl

    assert stretto.fidl is stretto_fidl
    assert sys.modules["stretto.fidl"] is stretto_fidl


@pytest.mark.parametrize("name", NAMES)
def test_aliases_of_modules_are_the_modules_themselves(name: str) -> None:
    old = importlib.import_module(f"stretto.fidl{name}")
    assert old is importlib.import_module(f"stretto_fidl{name}")
    assert old.__name__ == f"stretto_fidl{name}"
    assert old.__spec__ is not None
    assert old.__spec__.name == f"stretto_fidl{name}"


def test_alias_of_a_missing_module_is_not_found() -> None:
    importlib.import_module("stretto.fidl")
    assert importlib.util.find_spec("stretto.fidl.codec") is not None
    assert importlib.util.find_spec("stretto.fidl.none") is None
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'stretto\.fidl\.none'"):
        importlib.import_module("stretto.fidl.none")


def run(program: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    return done.stdout


def test_aliases_work_before_the_package_is_imported(tmp_path: Path) -> None:
    program = """
from stretto.fidl.codec import WireError
from stretto.fidl.bindings.generator import generate
import stretto.fidl.transport as transport
import stretto_fidl.codec, stretto_fidl.transport
assert WireError is stretto_fidl.codec.WireError
assert transport is stretto_fidl.transport
assert WireError.__module__.startswith("stretto_fidl."), WireError.__module__
print("same")
"""
    assert run(program, tmp_path) == "same\n"


def test_pickles_with_alias_names_are_read(tmp_path: Path) -> None:
    data = pickle.dumps(stretto_fidl.errors.FidlError("x"), 0)
    old = data.replace(b"stretto_fidl.errors", b"stretto.fidl.errors")
    assert old != data
    program = f"import pickle; print(type(pickle.loads({old!r})).__module__)"
    assert run(program, tmp_path) == "stretto_fidl.errors\n"


def test_importing_stretto_loads_neither_the_alias_nor_the_package(tmp_path: Path) -> None:
    program = "import sys, stretto; print([n for n in sys.modules if 'fidl' in n])"
    assert run(program, tmp_path) == "[]\n"
