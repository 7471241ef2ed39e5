"""The sitecustomize module of recorded Pythons must run in every Python version."""

from __future__ import annotations

import ast
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
