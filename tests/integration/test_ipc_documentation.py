"""The example of docs/ipc.md works: its files, commands, output, and the arrows in the trace."""

from __future__ import annotations

import csv
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import stretto

DOCUMENT = Path(__file__).parents[2] / "docs" / "ipc.md"
PRINTED = {"somebody looks at bread", "it costs 500", "bread is baked", "it is packed"}


def blocks(language: str) -> list[str]:
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    return [block for name, block in fenced if name == language]


def run(folder: Path, *arguments: str) -> str:
    path = [str(Path(stretto.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout


def test_shop_example_runs_as_documented(tmp_path: Path) -> None:
    (schema,) = blocks("proto")
    names = ("shop_service.py", "server.py", "client.py")
    texts = dict(zip(names, blocks("python"), strict=True))
    for name, text in {"shop.proto": schema, **texts}.items():
        assert f"`{name}`" in DOCUMENT.read_text()
        (tmp_path / name).write_text(text)
    (generate, recorded) = blocks("sh")
    (line,) = generate.splitlines()
    assert run(tmp_path, *line.split()[1:]) == ""
    record, flows = (line.split()[1:] for line in recorded.splitlines())
    assert set(run(tmp_path, "-m", "stretto", *record).splitlines()) == PRINTED
    table = run(tmp_path, "-m", "stretto", *flows, "--format", "csv")
    rows = {(row["method"], row["kind"]): row for row in csv.DictReader(io.StringIO(table))}
    assert rows.keys() == {
        ("Shop.Price", "request"),
        ("Shop.Order", "request"),
        ("Shop.Order", "reply"),
        ("Shop.Visit", "one-way"),
    }
    assert all(row["count"] == "1" and row["unmatched"] == "0" for row in rows.values())
