"""The finder of this package loads modules with the same results as Python's own finder."""

from __future__ import annotations

import importlib
import importlib.util
import os
import py_compile
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stretto._package_finder import Finder, Loader, install

if TYPE_CHECKING:
    from collections.abc import Iterator

OLD, NEW = "value = 1\n", "value = 2\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package with a module `one` and a package `inner`, all compiled, on `sys.path`."""
    folder = tmp_path / "fast_package"
    (folder / "inner").mkdir(parents=True)
    for path in (folder / "__init__.py", folder / "one.py", folder / "inner/__init__.py"):
        path.write_text(OLD)
        compile_at_once(path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder
    for name in [name for name in sys.modules if name.startswith("fast_package")]:
        del sys.modules[name]


def compile_at_once(path: Path) -> None:
    py_compile.compile(str(path), doraise=True)


def load(name: str) -> object:
    return importlib.import_module(f"fast_package.{name}" if name else "fast_package")


def install_in(folder: Path) -> None:
    load("")
    importlib.util.find_spec("fast_package.none")  # Makes Python cache its finder of the folder.
    install(str(folder))


def test_compiled_modules_and_packages_are_loaded_with_the_usual_attributes(folder: Path) -> None:
    specs = [importlib.util.find_spec(f"fast_package.{name}") for name in ("one", "inner")]
    install_in(folder)
    for usual, name in zip(specs, ("one", "inner"), strict=True):
        module = load(name)
        spec = module.__spec__  # type: ignore[attr-defined]
        assert isinstance(spec.loader, Loader)
        assert usual is not None
        assert usual.submodule_search_locations == spec.submodule_search_locations
        for attribute in ("name", "origin", "cached", "parent", "has_location"):
            assert getattr(spec, attribute) == getattr(usual, attribute)
        assert module.value == 1  # type: ignore[attr-defined]
        assert module.__file__ == usual.origin  # type: ignore[attr-defined]
        assert spec.loader.get_source(spec.name) == OLD
    assert isinstance(sys.path_importer_cache[str(folder / "inner")], Finder)


def test_changed_source_is_loaded_instead_of_the_compiled_file(folder: Path) -> None:
    install_in(folder)
    (folder / "one.py").write_text(NEW)
    os.utime(folder / "one.py", (1, 1))
    assert load("one").value == 2  # type: ignore[attr-defined]


def test_module_without_a_compiled_file_is_found(folder: Path) -> None:
    install_in(folder)
    (folder / "two.py").write_text(NEW)
    assert load("two").value == 2  # type: ignore[attr-defined]
    with pytest.raises(ModuleNotFoundError):
        load("three")


def test_compiled_file_of_another_python_version_is_ignored(folder: Path) -> None:
    install_in(folder)
    path = Path(importlib.util.cache_from_source(str(folder / "one.py")))
    path.write_bytes(b"bad!" + path.read_bytes()[4:16] + b"no code")
    assert load("one").value == 1  # type: ignore[attr-defined]


def test_code_of_a_moved_package_has_the_new_path(folder: Path) -> None:
    moved = folder.parent / "fast_package_moved"
    shutil.copytree(folder, moved, copy_function=shutil.copy2)
    importlib.import_module("fast_package_moved")
    importlib.util.find_spec("fast_package_moved.none")
    (moved / "one.py").write_text("def function(): pass\n")
    compile_at_once(moved / "one.py")
    shutil.rmtree(folder)
    moved.rename(folder)
    install_in(folder)
    module = load("one")
    assert module.function.__code__.co_filename == str(folder / "one.py")  # type: ignore[attr-defined]


def test_module_can_be_reloaded(folder: Path) -> None:
    install_in(folder)
    module = load("one")
    (folder / "one.py").write_text(NEW + NEW)
    assert importlib.reload(module).value == 2  # type: ignore[arg-type,attr-defined]


def test_finders_of_other_importers_are_kept(folder: Path) -> None:
    other = object()
    sys.path_importer_cache[str(folder)] = other  # type: ignore[assignment]
    install(str(folder))
    assert sys.path_importer_cache.pop(str(folder)) is other


def test_all_modules_of_stretto_are_listed_by_pkgutil() -> None:
    code = (
        "import pkgutil, stretto, stretto.base\n"
        "print(*[m.name for m in pkgutil.iter_modules(stretto.base.__path__)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"errors", "version", "c_modules"} <= set(done.stdout.split())
