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
    time.sleep(60)  # sleep: until the signal comes
except KeyboardInterrupt:
    print("interrupted")
    sys.exit(9)
"""


def test_ctrl_c_waits_until_the_program_starts(tmp_path: Path) -> None:
    own, fake = tmp_path / "own", tmp_path / "fake"
    own.mkdir()
    (own / "sitecustomize.py").write_text(SOURCE)
    folder = fake / "stretto" / "recorder" / "target"
    folder.mkdir(parents=True)
    for package in (folder, *folder.parents[:2]):
        (package / "__init__.py").write_text("")
    (folder / "bootstrap.py").write_text(BOOTSTRAP)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={"PYTHONPATH": f"{own}:{fake}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    # On a busy machine the program may be interrupted before its `try`.
    assert done.stderr == "" or done.stderr.endswith("\nKeyboardInterrupt\n")
    assert "site" not in done.stderr
    assert done.returncode in ((-signal.SIGINT, 1) if done.stderr else (9,))
