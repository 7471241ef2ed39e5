"""The verb `doctor`."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from stretto.cli.doctor.findings import MISSING, findings
from stretto.cli.verb_parser import VerbParser

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stretto.cli.doctor.findings import Finding

DESCRIPTION = """\
Show what this machine allows, and what follows from it for recording.

  ok        no limit
  limited   something is not recorded, or costs more
  missing   `stretto record` records nothing

Exit codes: 0; 1 if something is missing.
"""
WIDTH = 110


def run(arguments: Sequence[str]) -> int:
    """Run `stretto doctor`; return the exit code."""
    VerbParser("doctor", DESCRIPTION).parse_args(arguments)
    from stretto.cli.doctor.state import gather

    found = findings(gather())
    print("".join(map(shown, found)), end="")
    return int(any(each.level == MISSING for each in found))


def shown(finding: Finding) -> str:
    """Format a finding in lines of limited width."""
    start = f"{finding.level:<8} {finding.subject:<14} "
    return (
        textwrap.fill(
            f"{finding.text}.",
            WIDTH,
            initial_indent=start,
            subsequent_indent=" " * len(start),
            break_on_hyphens=False,
        )
        + "\n"
    )
