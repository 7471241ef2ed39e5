"""Modules from a bundle are those that the import system would have made."""

from __future__ import annotations

import gc
import importlib
import importlib.util
import inspect
import os
import subprocess
import sys
import sysconfig
from _frozen_importlib import _get_module_lock  # type: ignore[attr-defined]
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from stretto import _bundle
from tests.support.sources import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = "bundled_package"
SOURCES = {
    "__init__.py": "",
    "low.py": "import marshal\ndef value():\n    return 1\n",
    "inner/__init__.py": "from bundled_package.low import value\n",
    "inner/high.py": """
from bundled_package import inner
TYPE_CHECKING = False
if TYPE_CHECKING:
    from bundled_package.unused import nothing
try:
    from bundled_package.low import value
except ImportError:
    from bundled_package.unused import value
""",
    "unused.py": "",
}
NAMES = [f"{PACKAGE}.{name}" for name in ("low", "inner", "inner.high")]


@pytest.fixture
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bundles", ROOT / "tools/bundles.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    return tool


@pytest.fixture
def package(tmp_path: Path, tool: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package with a bundle `some` of its modules, but `unused`."""
    package = tmp_path / PACKAGE
    for name, source in SOURCES.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(source)
    monkeypatch.setattr(tool, "BUNDLES", {"some": f"{PACKAGE}.inner.high"})
    monkeypatch.setattr(tool, "FIRST", PACKAGE)
    tool.main(package, package / "bundles")
    monkeypatch.setattr(_bundle, "_package", str(package))
    monkeypatch.setattr(_bundle, "_loaded", set())
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.import_module(PACKAGE)
    yield package
    for name in [name for name in sys.modules if name.startswith(PACKAGE)]:
        del sys.modules[name]


def loaded() -> list[str]:
    return [name for name in sys.modules if name.startswith(f"{PACKAGE}.")]


def test_a_bundle_has_the_modules_that_its_roots_import(package: Path) -> None:
    _bundle.load("some")
    assert loaded() == NAMES


def test_modules_have_the_attributes_that_the_import_system_gives(package: Path) -> None:
    _bundle.load("some")
    for name in NAMES:
        module = sys.modules.pop(name)
        usual = importlib.import_module(name)
        for attribute in ("__name__", "__file__", "__package__", "__path__", "__doc__"):
            assert getattr(module, attribute, None) == getattr(usual, attribute, None)
        assert module.__spec__ == usual.__spec__
        assert type(module.__loader__) is type(usual.__loader__)


def test_modules_are_attributes_of_their_packages_and_know_their_sources(package: Path) -> None:
    _bundle.load("some")
    value = sys.modules[PACKAGE].inner.high.value
    assert value() == 1
    assert inspect.getsourcefile(value) == str(package / "low.py")
    assert inspect.getsource(value).endswith("return 1\n")
    assert value.__code__.co_filename == str(package / "low.py")


def test_a_module_that_is_imported_already_stays(package: Path) -> None:
    low = importlib.import_module(f"{PACKAGE}.low")
    _bundle.load("some")
    assert sys.modules[f"{PACKAGE}.low"] is low
    assert sys.modules[f"{PACKAGE}.inner.high"].value is low.value


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (lambda path: path.write_text(SOURCES["low.py"] + "\n"), "another size"),
        (lambda path: os.utime(path, (2e9, 2e9)), "written later"),
        (lambda path: path.unlink(), "missing"),
    ],
)
def test_a_bundle_of_edited_sources_is_not_used(package: Path, edit, why: str) -> None:  # type: ignore[no-untyped-def]
    edit(package / "low.py")
    _bundle.load("some")
    assert loaded() == [], why


def test_a_bundle_of_another_interpreter_is_not_used(package: Path) -> None:
    [path] = (package / "bundles").iterdir()
    path.write_bytes(b"\0" + path.read_bytes()[1:])
    _bundle.load("some")
    assert loaded() == []


def test_a_bundle_that_is_missing_has_no_effect(package: Path) -> None:
    _bundle.load("none")
    assert loaded() == []


@pytest.mark.parametrize("freeze", [False, True])
def test_modules_are_frozen_for_the_collector_if_asked(package: Path, freeze: bool) -> None:
    frozen = gc.get_freeze_count()
    _bundle.load("some", freeze=freeze)
    try:
        assert (gc.get_freeze_count() > frozen) == freeze
    finally:
        gc.unfreeze()


EXEMPT = """
import gc, threading
import stretto
from stretto.client.backend import load_in_process

later = threading.Event()
thread = threading.Thread(target=later.wait)
if {threads}:
    thread.start()
load_in_process()
later.set()
from stretto.service import tracing_service
assert not hasattr(tracing_service, "__cached__"), "it is from no bundle"
visited = any(vars(tracing_service) is other for other in gc.get_objects())
assert visited == {threads}
assert gc.isenabled()
"""


@pytest.mark.skipif(
    bool(sysconfig.get_config_var("Py_GIL_DISABLED")), reason="free-threaded builds have no lists"
)
@pytest.mark.parametrize("threads", [False, True])
def test_collections_visit_the_service_only_if_other_threads_ran_at_its_import(
    threads: bool,
) -> None:
    subprocess.run([sys.executable, "-c", EXEMPT.format(threads=threads)], check=True)


def test_modules_that_another_thread_is_importing_are_left_to_it(package: Path) -> None:
    lock = _get_module_lock(f"{PACKAGE}.low")  # An import has it.
    _bundle.load("some")
    del lock
    assert loaded() == []


def test_annotations_stay_texts_without_an_import_of_the_module_for_future_features(
    tool: ModuleType,
) -> None:
    source = b'"""About."""\n\nfrom __future__ import annotations\n\nvalue: missing = __doc__\n'
    code = tool.compile_module(source, "module.py")
    names: dict[str, object] = {}
    exec(code, names)
    assert "__future__" not in code.co_names
    assert names["value"] == "About."


def test_internal_modules_have_neither_docstrings_nor_annotations_of_functions(
    tool: ModuleType,
) -> None:
    source = b"""'About.'
class Kept:
    'Doc.'
    size: int = 3
    def double(self, by: int = 2, *more: int) -> int:
        'Doc.'
        return self.size * by
"""
    names: dict[str, Any] = {}
    exec(tool.compile_module(source, "module.py", bare=True), names)
    kept = names["Kept"]
    assert [names.get("__doc__"), kept.__doc__, kept.double.__doc__] == [None] * 3
    assert kept.double.__annotations__ == {}
    assert kept().double() == 6
    assert kept.double.__code__.co_firstlineno == 5


PUBLIC = ("StrettoError", "DataSource", "TracingSession", "recording", "connect", "traced")


@pytest.mark.once
def test_public_names_of_bundles_keep_their_docstrings() -> None:
    names = (*PUBLIC, "TracingSession.start", "DataSource.on_start")
    text = "\n".join(f"print({name!r}, stretto.{name}.__doc__ is not None)" for name in names)
    done = usually_imported("-c", f"import stretto\n{text}")
    assert done == {*names, "True"}


NEEDLESS = """
import sys
before = set(sys.modules)
import stretto
with stretto.recording({path!r}): pass
print(*(set(sys.modules) - before) & {{"__future__", "_heapq", "collections", "select", "typing"}})
"""


@pytest.mark.once
def test_a_recording_imports_no_modules_of_the_library_that_it_can_do_without(
    tmp_path: Path,
) -> None:
    assert usually_imported("-c", NEEDLESS.format(path=str(tmp_path / "trace"))) == set()


LIST = """
for name, module in list(sys.modules.items()):
    if name.startswith("stretto.") and hasattr(module, "__cached__"):
        print(name)
"""
"""Prints the modules that are from no bundle."""
USUAL = {"stretto._bundle"}
"""What is needed before."""
MISSING = "add the modules to the roots in tools/bundles.py"


def usually_imported(*command: str | Path) -> set[str]:
    command = (sys.executable, *command)
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.once
def test_an_import_of_the_package_needs_one_bundle() -> None:
    assert usually_imported("-c", f"import sys, stretto\n{LIST}") == USUAL, MISSING


@pytest.mark.once
def test_bundles_have_all_modules_of_a_recording(tmp_path: Path) -> None:
    block = f"with stretto.recording({str(tmp_path / 'trace')!r}): pass"
    assert usually_imported("-c", f"import sys, stretto\n{block}\n{LIST}") == USUAL, MISSING


@pytest.mark.once
def test_bundles_have_all_modules_of_a_recorded_program(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"import sys\n{LIST}")
    record = ["-m", "stretto", "record", "-q", "-o", tmp_path / "trace", program]
    target = ("recorder", "recorder.workspace", "recorder.target", "recorder.target.bootstrap")
    expected = USUAL | {f"stretto.{name}" for name in target}
    assert usually_imported(*record) == expected, MISSING


@pytest.mark.once
def test_bundles_have_all_modules_of_a_recorder(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.touch()
    list_at_exit = f"""
import os, sys
arguments = ["record", "-q", "-o", {str(tmp_path / "trace")!r}, {str(program)!r}]
from stretto.cli.main import main
before = set(sys.modules)
main(arguments)
for name in set(sys.modules) - before:
    if name.startswith("stretto.") and hasattr(sys.modules[name], "__cached__"):
        print(name)
"""
    assert usually_imported("-c", list_at_exit) == set(), MISSING


WITHOUT_TASKS = """
import sys
print(*(name for name in ("operator", "types", "struct", "stretto.profilers.asyncio_tasks")
    if name in sys.modules))
"""


@pytest.mark.once
def test_a_recorded_program_without_tasks_loads_no_modules_for_them(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(WITHOUT_TASKS)
    bare = usually_imported(program)
    record = ["-m", "stretto", "record", "-q", "-o", tmp_path / "trace", program]
    assert usually_imported(*record) == bare
    program.write_text(f"import asyncio\n{WITHOUT_TASKS}")
    assert "stretto.profilers.asyncio_tasks" in usually_imported(*record)
