"""Try an installed wheel with nothing but the standard library.

    python -I tests/smoke/smoke.py native|pure
    python -I tests/smoke/smoke.py reader TRACE

`native` checks that the extensions load, that a recording has packets, and that verbs read it.
`pure` checks that there are no extensions and that every call is a valid no-op. `reader` is a wheel
for another system: there verbs read a trace of `program.py`, and the rest is as in the pure wheel.
All run the tests of `disabled_behaviour.py` and `tools_behaviour.py`, and check that
`stretto fidl` prints how to install stretto-fidl.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import stretto

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent.parent))  # Python runs isolated.

from tests.smoke.reading import check_reading  # noqa: E402


def check(condition: object, complaint: str) -> None:
    """Exit with `complaint` unless the condition is true; works under `python -O`, too."""
    if not condition:
        sys.exit(f"smoke: {complaint}")


def check_installed() -> None:
    """Check that the installed package is imported and typed, and that PATH has no C compiler."""
    package = Path(stretto.__file__).parent
    check(package.is_relative_to(sys.prefix), f"stretto was imported from {package}")
    check((package / "py.typed").exists(), "py.typed is missing")
    for compiler in ("cc", "gcc", "clang"):
        for folder in os.get_exec_path():
            check(not Path(folder, compiler).exists(), f"{compiler} is on PATH")


def record(path: Path) -> None:
    """Record one slice."""
    with stretto.recording(str(path)), stretto.slice("smoke"):
        stretto.instant("inside", number=1)


def check_native() -> None:
    """Check that the extension modules work."""
    check(stretto.available(), "stretto.available() is false in a native wheel")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "smoke.pftrace")
        record(path)
        data = path.read_bytes()
        check(b"smoke" in data, "the recording lacks its slice")
        check(b"inside" in data, "the recording lacks its instant")
        check_commands(Path(folder))
    for heavy in ("google.protobuf", "asyncio"):
        check(heavy not in sys.modules, f"recording() has loaded {heavy}")


def check_commands(folder: Path) -> None:
    """Check that `stretto record` records a program and that `stretto traced` prints its help."""
    command = str(Path(sys.executable).with_name("stretto"))
    script, trace = HERE / "program.py", folder / "recorded.pftrace"
    options = ("--ring", "-o", str(trace))  # the default, auto detail, omits short calls
    recorded = subprocess.run([command, "record", *options, str(script)], check=False)
    check(recorded.returncode == 3, f"record ended with {recorded.returncode}, not with 3")
    check_reading(trace, "called", folder)
    explained = subprocess.run(
        [command, "traced", "--help"], check=False, capture_output=True, text=True
    )
    check(explained.returncode == 0 and explained.stdout, "`stretto traced --help` says nothing")


def check_pure() -> None:
    """Check that a pure wheel has no extension."""
    check(not has_extension("_importer"), "the pure wheel contains stretto._importer")
    check_disabled()


def check_reader() -> None:
    """Check that verbs read the trace of the second argument, and that nothing else is native."""
    check(has_extension("_importer"), "the wheel lacks stretto._importer")
    check_disabled()
    with tempfile.TemporaryDirectory() as folder:
        check_reading(Path(sys.argv[2]), "called", Path(folder))


def has_extension(name: str) -> bool:
    """Return whether the package has an extension."""
    return importlib.util.find_spec(f"stretto.{name}") is not None


def check_disabled() -> None:
    """Check that nothing is recorded: no file is written, and no exception raised."""
    check(not stretto.available(), "stretto.available() is true without _native")
    for name in ("_native", "_pyhooks"):
        check(not has_extension(name), f"the wheel contains stretto.{name}")
    with tempfile.TemporaryDirectory() as folder:
        record(Path(folder, "smoke.pftrace"))


def check_without_fidl() -> None:
    """Check that `stretto fidl` and `stretto.fidl` name the missing distribution stretto-fidl."""
    hint = "pip install stretto-fidl"
    command = [sys.executable, "-I", "-m", "stretto", "fidl", "--help"]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    check(
        ended.returncode == 1 and hint in ended.stderr, "`stretto fidl` doesn't say what it needs"
    )
    try:
        importlib.import_module("stretto.fidl.codec")
    except ModuleNotFoundError as error:
        check(hint in str(error), "`import stretto.fidl` doesn't say what it needs")
    else:
        check(False, "stretto.fidl is there, without stretto-fidl")


def check_behaviour() -> None:
    """Run the tests that pass with each wheel."""
    suite = unittest.TestLoader().discover(str(HERE), pattern="*_behaviour.py")
    check(suite.countTestCases(), "the suites of common behaviour are empty")
    result = unittest.TextTestRunner(verbosity=1).run(suite)
    check(result.wasSuccessful(), "behaviour differs from what each wheel promises")


def main() -> None:
    """Run the checks for the kind of wheel in the first argument."""
    kinds = {"native": check_native, "pure": check_pure, "reader": check_reader}
    check(len(sys.argv) > 1 and sys.argv[1] in kinds, "usage: smoke.py native|pure|reader [TRACE]")
    check_installed()
    kinds[sys.argv[1]]()
    check_without_fidl()
    check_behaviour()
    print(f"smoke: the {sys.argv[1]} wheel works on {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
