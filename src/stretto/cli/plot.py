"""The verb `plot`: draws a trace as PNG or SVG."""

from __future__ import annotations

import io
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from stretto.analysis.plots import KINDS, PlotError, draw
from stretto.analysis.trace_tables import damage, import_trace
from stretto.base.errors import CommandError
from stretto.cli.output_file import STANDARD, open_output
from stretto.cli.trace_reading import reading, warn_of_damage
from stretto.cli.verb_parser import VerbParser

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

DESCRIPTION = """\
Draw a trace, as PNG or SVG (pip install 'stretto[plot]').

  stretto plot trace.pftrace                       slices over time, to trace.png
  stretto plot --kind flame -o flame.svg trace.pftrace
  stretto plot --kind latency --name 'handle*' trace.pftrace
  stretto plot --kind counters trace.pftrace
"""

FORMATS = ("png", "svg")
_NO_GLYPH = ("Glyph ", "Matplotlib currently does not support ")
"""How matplotlib's warnings of characters begin that its font lacks: it draws a box instead."""


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = VerbParser("plot", DESCRIPTION)
    parser.add_argument("trace", metavar="TRACE", help="may be gzipped; - is standard input")
    parser.add_argument(
        "--kind",
        choices=KINDS,
        default="slices",
        help="slices or counters over time, a flame graph, a histogram of durations",
    )
    parser.add_argument("--name", metavar="NAME", default="*", help="slices or counters, a pattern")
    parser.add_argument("-o", "--output", metavar="FILE", help="its extension is .png or .svg")
    parsed = parser.parse_args(arguments)
    if parsed.output is None:
        stem = "trace" if parsed.trace == STANDARD else Path(parsed.trace).stem
        parsed.output = f"{stem}.png"
    if _format(parsed.output) not in FORMATS:
        parser.error("the extension of --output must be .png or .svg")
    return parsed


def _format(path: str) -> str:
    return Path(path).suffix.lower().removeprefix(".")


def _picture(given: argparse.Namespace) -> bytes:
    title = "standard input" if given.trace == STANDARD else Path(given.trace).name
    importer = import_trace(given.trace)
    warn_of_damage("plot", given.trace, damage(importer))
    figure = draw(importer, given.kind, title, given.name)
    out = io.BytesIO()
    with warnings.catch_warnings():
        for message in _NO_GLYPH:
            warnings.filterwarnings("ignore", message, UserWarning)
        figure.savefig(out, format=_format(given.output), dpi=120)
    return out.getvalue()


def run(arguments: Sequence[str]) -> int:
    """Run `stretto plot`.

    Raises:
        CommandError: The trace can't be read, it has nothing to draw, or matplotlib is missing.
    """
    given = _parse(arguments)
    try:
        with reading("plot", given.trace):
            picture = _picture(given)
            source = None if given.trace == STANDARD else os.stat(given.trace)
    except PlotError as error:
        raise CommandError(f"plot: {given.trace!r}: {error}.") from error
    with open_output("plot", given.output, binary=True, source=source) as out:
        out.write(picture)
    print(f"stretto: {given.output}")
    return 0
