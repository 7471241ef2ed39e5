"""Try an installed wheel with nothing but the standard library.

    python -I tests/smoke/smoke.py native|pure

`native` checks that the extensions load and that a recording has packets. `pure` checks that
there are no extensions and that every call is a valid no-op. Both run the tests of
`disabled_behaviour.py` and `tools_behaviour.py`, and check that `stretto fidl` prints how to
install stretto-fidl.
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
    script, trace = folder / "program.py", folder / "recorded.pftrace"
    script.write_text("def called(): pass\ncalled()\nraise SystemExit(3)\n")
    options = ("--ring", "-o", str(trace))  # the default, auto detail, omits short calls
    recorded = subprocess.run([command, "record", *options, str(script)], check=False)
    check(recorded.returncode == 3, f"record ended with {recorded.returncode}, not with 3")
    check(b"called" in trace.read_bytes(), "the recorded program's call is not in its trace")
    explained = subprocess.run(
        [command, "traced", "--help"], check=False, capture_output=True, text=True
    )
    check(explained.returncode == 0 and explained.stdout, "`stretto traced --help` says nothing")


def check_pure() -> None:
    """Check that a pure wheel writes no file and raises no exception."""
    check(not stretto.available(), "stretto.available() is true in a pure wheel")
    for name in ("_native", "_pyhooks"):
        found = importlib.util.find_spec(f"stretto.{name}")
        check(found is None, f"the pure wheel contains stretto.{name}")
    with tempfile.TemporaryDirectory() as folder:
        record(Path(folder, "smoke.pftrace"))


def check_without_fidl() -> None:
    """Check that `stretto fidl` and `stretto.fidl` name the missing distribution stretto-fidl."""
    hint = "pip install stretto-fidl"
    command = [str(Path(sys.executable).with_name("stretto")), "fidl", "--help"]
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
    """Run the tests that pass with the native and with the pure wheel."""
    suite = unittest.TestLoader().discover(str(HERE), pattern="*_behaviour.py")
    check(suite.countTestCases(), "the suites of common behaviour are empty")
    result = unittest.TextTestRunner(verbosity=1).run(suite)
    check(result.wasSuccessful(), "behaviour differs from what both wheels promise")


def main() -> None:
    """Run the checks for the kind of wheel in the first argument."""
    kinds = {"native": check_native, "pure": check_pure}
    check(len(sys.argv) == 2 and sys.argv[1] in kinds, "usage: smoke.py native|pure")
    check_installed()
    kinds[sys.argv[1]]()
    check_without_fidl()
    check_behaviour()
    print(f"smoke: the {sys.argv[1]} wheel works on {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
