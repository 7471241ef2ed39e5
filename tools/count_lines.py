"""Counts the hand-written lines of code of `stretto` at two commits.

    python tools/count_lines.py BASE [TIP]

prints a table by folder, and the sum. Comments, docstrings and blank lines are not counted, nor
are FIDL, tests and generated files.
"""

from __future__ import annotations

import ast
import collections
import io
import re
import subprocess
import sys
import tokenize

SUFFIXES = (".py", ".pyi", ".c", ".h", ".cc")
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def git(*arguments: str) -> str:
    """Return the output of a git command."""
    return subprocess.run(("git", *arguments), check=True, capture_output=True, text=True).stdout


def is_counted(path: str) -> bool:
    """Return whether a file is hand-written code of `stretto`, by its path."""
    return (
        path.startswith(("src/", "native/"))
        and path.endswith(SUFFIXES)
        and not path.startswith("native/test")
        and "fidl" not in path
    )


def docstring_lines(tree: ast.AST) -> set[int]:
    """Return the numbers of the lines of statements that are only a string."""
    return {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


def python_lines(source: str) -> int:
    """Return the number of lines with code in a Python source."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstring_lines(ast.parse(source)))


def c_lines(source: str) -> int:
    """Return the number of lines with code in a C source."""
    code = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), source, flags=re.DOTALL)
    return sum(1 for line in code.split("\n") if line.strip())


def count(commit: str) -> collections.Counter[str]:
    """Return the lines of code of a commit by folder."""
    counts: collections.Counter[str] = collections.Counter()
    for path in filter(is_counted, git("ls-tree", "-r", "--name-only", commit).splitlines()):
        source = git("show", f"{commit}:{path}")
        if re.search("enerated (by|from)", source[:600]):
            continue
        folder = "/".join(path.split("/")[: 3 if path.startswith("src/") else 2])
        counts[folder] += python_lines(source) if ".py" in path else c_lines(source)
    return counts


def main() -> None:
    """Print the table."""
    base, tip = count(sys.argv[1]), count([*sys.argv, "HEAD"][2])
    for folder in sorted(base | tip):
        print(f"{folder:40}{base[folder]:8}{tip[folder]:8}{tip[folder] - base[folder]:+8}")
    print(f"{'all':40}{base.total():8}{tip.total():8}{tip.total() - base.total():+8}")


if __name__ == "__main__":
    main()
