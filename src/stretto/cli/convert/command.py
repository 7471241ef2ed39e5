"""`stretto convert`: converts a trace to another format."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING, cast

from stretto.analysis.conversion import convert
from stretto.analysis.empty_trace import EmptyTraceError
from stretto.analysis.export.exporters import FORMATS as EXPORTS
from stretto.analysis.export.exporters import format_of_export
from stretto.analysis.packet_stream import PacketStream
from stretto.analysis.trace_format import (
    FORMATS,
    JSON,
    PFTRACE,
    SNIFFED_BYTES,
    TEXT,
    format_of_file,
    format_of_name,
    format_of_start,
    is_chrome_json,
)
from stretto.base.errors import CommandError, ConfigError, DecodeError
from stretto.cli.convert.exporting import PARQUET, export_trace, nothing_in
from stretto.cli.convert.input_file import open_input
from stretto.cli.convert.progress import Progress
from stretto.cli.output_file import STANDARD, open_output
from stretto.cli.record.summary import plural, size_text
from stretto.cli.verb_parser import VerbParser
from stretto.protozero.text_format import TextFormatError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from typing import BinaryIO

    from stretto.analysis.fxt.outcome import Outcome
    from stretto.cli.convert.input_file import Source

DESCRIPTION = """\
Convert a trace to another format.

  stretto convert trace.pftrace trace.fxt        for Fuchsia's tools
  stretto convert trace.fxt trace.pftrace        for Perfetto's UI, and for stretto flows
  stretto convert trace.pftrace trace.pbtxt      to read, or to change and convert back
  stretto convert trace.pftrace - --to json | jq '.packet[].internedData.eventNames[]?.name'

Formats, and the extensions of their file names:

  pftrace   .pftrace .perfetto-trace .pb   Perfetto's packets
  fxt       .fxt                           Fuchsia's trace format
  text      .txt .pbtxt .textproto         packets as text
  json      .json                          packets as JSON, by protobuf's rules
  chrome    .chrome.json                   Chrome's JSON: slices, instants, counters
  jsonl     .jsonl                         a JSON object per slice and counter value, all names
  collapsed .collapsed .folded             a line per stack: flame graphs
  speedscope .speedscope.json              speedscope.app
  pprof     .pprof .pb.gz                  pprof
  firefox   .firefox.json                  profiler.firefox.com
  pstats    .pstats .prof                  Python's module pstats, snakeviz
  parquet   .parquet                       a folder of tables (pip install 'stretto[analysis]')

FXT can hold track events: slices, instants, counters, arguments, and flows with their arrows.
Other data (packets of other data sources, CPU times, more than 15 arguments) is left out, and
counted in the summary. Text and JSON can hold all fields of the schema. A trace compressed by gzip
is decompressed. A .json file may also be Chrome's JSON, which is recognized by its content. The
formats from chrome on are written of all that `stretto query` reads, and not read otherwise.
Profiles have the stacks of slices, or of samples if there are no slices but those of waits and
garbage collections.
"""


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = VerbParser("convert", DESCRIPTION)
    parser.add_argument("source", metavar="IN", help="the trace; - is standard input")
    parser.add_argument("target", metavar="OUT", help="the result; - is standard output")
    parser.add_argument(
        "--from",
        dest="source_format",
        choices=FORMATS,
        help="format of IN, if it can't be detected",
    )
    parser.add_argument(
        "--to",
        dest="target_format",
        choices=(*FORMATS, *EXPORTS, PARQUET),
        help="format of OUT, if not by its extension",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress, no summary")
    return parser.parse_args(arguments)


def _known_formats() -> str:
    return ", ".join(FORMATS)


def _target_format(path: str) -> str:
    if path.lower().endswith(f".{PARQUET}"):
        return PARQUET
    found = format_of_export(path) or format_of_name(path)
    if found is not None:
        return found
    raise CommandError(
        f"convert: the extension of {path!r} is unknown: give --to, one of {_known_formats()}, "
        f"{', '.join(EXPORTS)}, {PARQUET}.",
        2,
    )


def _source_format(given: argparse.Namespace, file: Source) -> str:
    if given.source_format is not None:
        return str(given.source_format)
    found = format_of_file(given.source, file.start)
    if found is None:
        raise CommandError(
            f"convert: {given.source!r} isn't a trace, or its format can't be detected: give "
            f"--from, one of {_known_formats()}.",
            2,
        )
    named = format_of_name(given.source)
    if named not in (found, None) and not given.quiet:
        _hint(f"{given.source!r} has the extension of {named}, but is read as {found}")
    return found


def run(arguments: Sequence[str]) -> int:
    """Run `stretto convert`.

    Raises:
        CommandError: The trace can't be read, or the result can't be written.
        BrokenPipeError: The reader of the result has closed the pipe.
    """
    given = _parse(arguments)
    target = given.target_format or _target_format(given.target)
    if target in EXPORTS or target == PARQUET:
        return export_trace(given, target)
    with open_input(given.source) as file:
        if not file.start:
            raise nothing_in(given.source)
        source = _source_format(given, file)
        if source == target:
            raise _same_format(given.source, file, source)
        _convert(given, file, source, target)
    return 0


def _same_format(path: str, file: Source, source: str) -> CommandError:
    if source == JSON and is_chrome_json(file.start):
        return CommandError(
            f"convert: {path!r} is Chrome's JSON, and json is that of packets: convert to pftrace "
            "first, or to Chrome's JSON by --to chrome.",
            2,
        )
    return CommandError(
        f"convert: {path!r} has the format {source} already: choose another one by OUT's "
        "extension, or by --to.",
        2,
    )


def _convert(given: argparse.Namespace, file: Source, source: str, target: str) -> None:
    shown = False if given.quiet else None
    binary = target not in (TEXT, JSON)
    with open_output("convert", given.target, binary=binary, source=file.status) as out:
        progress = Progress(cast("BinaryIO", file), out.write, shown=shown)
        try:
            outcome = convert(progress.reader, source, progress.write, target, name=given.source)
        except EmptyTraceError as error:
            raise nothing_in(given.source) from error
        except TextFormatError as error:
            raise CommandError(f"convert: {error}".rstrip()) from error
        except (ConfigError, DecodeError) as error:
            raise CommandError(f"convert: {given.source!r}: {error}".rstrip(".\n") + ".") from error
        except OSError as error:
            if isinstance(error, BrokenPipeError):
                raise
            reason = error.strerror or error
            raise CommandError(f"convert: {given.source!r}: {reason}.") from error
        finally:
            progress.clear()
        if not outcome.made.total():
            _check_empty(given.source, file, source, outcome)
    if not given.quiet:
        _print_summary(given.target, outcome, progress.written_bytes)


def _check_empty(path: str, file: Source, source: str, outcome: Outcome) -> None:
    """Accept an empty trace; refuse a file without any convertible data.

    Raises:
        CommandError: The file isn't an empty trace.
    """
    if outcome.left_out:
        what = _listed(outcome.left_out)
        raise CommandError(f"convert: {path!r} has nothing to convert, but {what}.")
    if source == PFTRACE and file.start and not _begins_with_packets(file.start):
        raise CommandError(f"convert: {path!r} has nothing to convert: it isn't a trace.")


def _begins_with_packets(start: bytes) -> bool:
    """Whether the file starts with a valid packet.

    The conversion reads only events, so it may succeed on a file that isn't a trace.
    """
    packets = PacketStream(io.BytesIO(start))
    whole = len(start) < SNIFFED_BYTES
    return format_of_start(start) == PFTRACE and (any(True for _ in packets) or not whole)


def _print_summary(path: str, outcome: Outcome, size: int) -> None:
    """Print the summary; on standard error if the result is on standard output."""
    stream = sys.stderr if path == STANDARD else sys.stdout
    if stream is None:
        return  # Standard error is closed; print would write to standard output instead.
    made = (
        ", ".join(plural(count, noun) for noun, count in outcome.made.most_common())
        or "an empty trace"
    )
    to = "" if path == STANDARD else f" in {path}"
    print(f"stretto: {made}{to}, {size_text(size)}", file=stream)
    if outcome.left_out:
        print(f"stretto: left out: {_listed(outcome.left_out)}", file=stream)


def _hint(text: str) -> None:
    if sys.stderr is not None:
        print(f"stretto: {text}.", file=sys.stderr)


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{what} ({count:,})" for what, count in counts.items())
