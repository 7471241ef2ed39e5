"""The example package in docs/verbs.md adds a verb to the command `stretto`."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.sources import ROOT

BLOCKS = dict(
    re.findall(
        r"^```(\w*)\n(.*?)^```",
        (ROOT / "docs" / "verbs.md").read_text("utf-8"),
        re.DOTALL | re.MULTILINE,
    )
)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a folder that contains the example package as pip installs it."""
    entries = tomllib.loads(BLOCKS["toml"])["project"]["entry-points"]["stretto.verbs"]
    metadata = tmp_path / "trace_size-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: trace-size\nVersion: 1\n")
    lines = "".join(f"{name} = {value}\n" for name, value in entries.items())
    (metadata / "entry_points.txt").write_text(f"[stretto.verbs]\n{lines}")
    (tmp_path / "trace_size.py").write_text(BLOCKS["python"])
    return tmp_path


def stretto(site: Path, *arguments: str) -> str:
    """Run `stretto` with these arguments; return its standard output and error."""
    return subprocess.run(
        [sys.executable, "-m", "stretto", *arguments],
        cwd=site,  # `python -m` imports from the working directory.
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ).stdout


def test_added_verb_prints_the_documented_output(site: Path) -> None:
    (site / "trace.pftrace").write_bytes(bytes(1 << 20))
    shown = re.findall(r"^\$ stretto (.*)\n(.*)$", BLOCKS[""], re.MULTILINE)
    assert len(shown) == 2
    for command, output in shown:
        assert stretto(site, *command.split()) == f"{output}\n"


def test_added_verb_is_in_the_help_and_has_help(site: Path) -> None:
    assert re.search(r"stretto size +Print the size of a trace\.$", stretto(site, "--help"), re.M)
    assert "usage: stretto size" in stretto(site, "size", "--help")
    assert "`stretto size --help` shows how" in stretto(site, "size")
