"""The sitecustomize module of recorded Pythons: its syntax, and signals while it runs."""

from __future__ import annotations

import ast
import signal
import subprocess
import sys
from pathlib import Path

from stretto.recorder import target

SOURCE = Path(target.__file__).with_name("sitecustomize.py").read_text(encoding="ascii")


def test_syntax_is_valid_for_python_2() -> None:
    tree = ast.parse(SOURCE)
    too_new = (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr, ast.AsyncFunctionDef, ast.Nonlocal)
    for node in ast.walk(tree):
        assert not isinstance(node, too_new)
        if isinstance(node, ast.FunctionDef):
            assert node.returns is None
        if isinstance(node, ast.arguments):
            assert not node.kwonlyargs
            assert not node.posonlyargs
        if isinstance(node, ast.arg):
            assert node.annotation is None
        if isinstance(node, ast.ImportFrom):
            assert node.module != "__future__"


BOOTSTRAP = "import os, signal\ndef start(first): os.kill(os.getpid(), signal.SIGINT)\n"
PROGRAM = """
import sys, time
try:
    time.sleep(20)  # sleep: until the signal comes
except KeyboardInterrupt:
    print("interrupted")
    sys.exit(9)
"""


# The end of an import takes long, and ignores exceptions as the import system's callbacks do.
SLOW_IMPORT = """
import importlib._bootstrap, time
release = importlib._bootstrap._ModuleLock.release
def slow_release(lock):
    release(lock)
    try: time.sleep(0.05)  # sleep: an interrupt may come now
    except KeyboardInterrupt: pass
importlib._bootstrap._ModuleLock.release = slow_release
"""


def run_interrupted(tmp_path: Path, bootstrap: str) -> subprocess.CompletedProcess[str]:
    """Run the program; SIGINT comes while Stretto starts in it."""
    own, fake = tmp_path / "own", tmp_path / "fake"
    own.mkdir()
    (own / "sitecustomize.py").write_text(SOURCE)
    folder = fake / "stretto" / "recorder" / "target"
    folder.mkdir(parents=True)
    for package in (folder, *folder.parents[:2]):
        (package / "__init__.py").write_text("")
    (folder / "bootstrap.py").write_text(bootstrap)
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={"PYTHONPATH": f"{own}:{fake}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


def test_ctrl_c_waits_until_the_program_starts(tmp_path: Path) -> None:
    done = run_interrupted(tmp_path, BOOTSTRAP)
    # On a busy machine the program may be interrupted before its `try`.
    assert done.stderr == "" or done.stderr.endswith("\nKeyboardInterrupt\n")
    assert "site" not in done.stderr
    assert done.returncode in ((-signal.SIGINT, 1) if done.stderr else (9,))


def test_ctrl_c_is_not_lost_at_the_end_of_an_import(tmp_path: Path) -> None:
    done = run_interrupted(tmp_path, BOOTSTRAP + SLOW_IMPORT)
    assert done.returncode in (9, -signal.SIGINT, 1)
