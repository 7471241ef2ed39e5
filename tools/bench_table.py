"""Run every benchmark in bench/ and print their rows as one table.

    python tools/bench_table.py [NAME ...]

A benchmark is a program `bench/NAME.py` that, with `--json`, prints one JSON object per
row: `name`, `ours`, `peer`, `unit`, `ratio`. `ratio` is `ours` divided by `peer`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BENCH = Path(__file__).parent.parent / "bench"
COLUMNS = ("benchmark", "row", "ours", "peer", "unit", "ratio")


def benchmarks(names: list[str]) -> list[Path]:
    """Return the named benchmarks, or all. Modules with a leading underscore are no benchmarks."""
    if names:
        return [BENCH / f"{name}.py" for name in names]
    return sorted(path for path in BENCH.glob("*.py") if not path.name.startswith("_"))


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows that a benchmark prints.

    Raises:
        subprocess.CalledProcessError: The benchmark failed; its error is on stderr.
    """
    command = [sys.executable, str(path), "--json"]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    for line in output.splitlines():
        if line.startswith("{"):
            yield json.loads(line)


def cell(value: object) -> str:
    """Return a float as text with three digits, None as an empty text, and other values as text."""
    return f"{value:,.3g}" if isinstance(value, float) else "" if value is None else str(value)


def main() -> int:
    """Print the table; return the number of failed benchmarks."""
    table: list[tuple[str, ...]] = [COLUMNS]
    failed = 0
    for path in benchmarks(sys.argv[1:]):
        try:
            for row in rows(path):
                figures = (cell(row.get(key)) for key in ("name", "ours", "peer", "unit", "ratio"))
                table.append((path.stem, *figures))
        except subprocess.CalledProcessError as error:
            print(f"bench/{path.name} failed with status {error.returncode}", file=sys.stderr)
            failed += 1
    widths = [max(len(line[column]) for line in table) for column in range(len(COLUMNS))]
    for line in table:
        print(
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        )
    return failed


if __name__ == "__main__":
    sys.exit(main())
