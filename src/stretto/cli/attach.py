"""The verb `attach`."""

from __future__ import annotations

import signal
import sys
import zlib
from argparse import ArgumentTypeError
from typing import TYPE_CHECKING

from stretto.base.errors import CommandError, ConfigError
from stretto.base.trace_name import name_complaint
from stretto.cli.native_lines import native_lines
from stretto.cli.output_file import STANDARD, open_output
from stretto.cli.record.options import parse_rate, parse_time_ns
from stretto.cli.text_table import as_table
from stretto.cli.verb_parser import VerbParser, flag
from stretto.profilers.sampling.process import CPU, GIL, PERF_SAMPLE, STACK_SAMPLE, WALL
from stretto.profilers.sampling.profile import NS, Profile
from stretto.profilers.sampling.settings import Settings
from stretto.profilers.sampling.shortfalls import NOT_SEEN
from stretto.profilers.sampling.slower import slow_text
from stretto.protozero.wire import bytes_field

if TYPE_CHECKING:
    from collections.abc import Sequence

DESCRIPTION = """\
Record samples of the Python stacks of a process that runs already, and of its children.

  stretto attach 4711                      until it ends, or Ctrl-C
  stretto attach 4711 -t 10s -o web.pftrace
  stretto attach 4711 --wall               waiting threads, too
  stretto attach 4711 --native             C functions, too

The process needs no preparation. It is neither stopped (unless with --native) nor changed: its
memory is read while it runs. CPython 3.11 to 3.15 is supported, in any environment of this machine.
"""

EPILOG = """\
The trace has a track of samples for each thread: `stretto view TRACE`, then select a part of the
track for its flame graph. By default only threads that use a CPU are sampled: the number of samples
times the period is the CPU time of the process. As with a debugger,
you can read your own processes, and root can read all.
"""

DEFAULT_OUTPUT = "trace.pftrace"
DEFAULT_RATE = "1000hz"
MODES = {CPU: "CPU time", WALL: "wall time", GIL: "time with the GIL"}
_TOP = 10
_PACKET = 1  # Trace.packet
_COMPRESSED_PACKETS = 50  # TracePacket.compressed_packets
_FAST = 1


def rate(text: str) -> int:
    """Return the period of a rate such as `1000hz`, in nanoseconds.

    Raises:
        ArgumentTypeError: The rate is malformed, or out of range.
    """
    try:
        return parse_rate(text)
    except ConfigError as error:
        raise ArgumentTypeError(str(error).rstrip(".")) from error


def duration(text: str) -> float:
    """Return the seconds of a time with a unit, such as `10s`, `500ms` or `2m`.

    Raises:
        ArgumentTypeError: The time is malformed, or 0.
    """
    try:
        return parse_time_ns(text) / NS
    except ConfigError as error:
        raise ArgumentTypeError(str(error).rstrip(".")) from error


def add_sampling_options(parser: VerbParser) -> None:
    """Add the arguments for the process, the rate and the mode of sampling."""
    parser.add_argument("pid", type=int, metavar="PID", help="the process")
    parser.add_argument(
        "--rate",
        type=rate,
        default=DEFAULT_RATE,
        help=f"samples a second, for each thread; default {DEFAULT_RATE}",
    )
    modes = parser.add_mutually_exclusive_group()
    flag(modes, "--wall", "sample all threads, running or waiting")
    flag(modes, "--gil", "sample the thread that holds the GIL (CPython 3.12 and later)")
    flag(parser, "--no-children", "sample this process only")
    flag(
        parser,
        "--native",
        "show C functions, too: a thread that runs is stopped for each sample, for about 60 "
        "µs; at most 5 %% of the time",
    )


def settings_of(options: object) -> Settings:
    """Return the settings that parsed options select."""
    given = vars(options)
    mode = WALL if given["wall"] else GIL if given["gil"] else CPU
    form = STACK_SAMPLE if given.get("stack_samples") else PERF_SAMPLE
    return Settings(
        mode,
        given["rate"],
        children=not given["no_children"],
        form=form,
        native=given["native"],
    )


def run(arguments: Sequence[str]) -> int:
    """Run `stretto attach`.

    Raises:
        CommandError: The options are wrong, or the trace can't be written.
    """
    parser = VerbParser("attach", DESCRIPTION, epilog=EPILOG)
    add_sampling_options(parser)
    parser.add_argument(
        "-o",
        "--output",
        default=DEFAULT_OUTPUT,
        metavar="FILE",
        help=f"the trace; default {DEFAULT_OUTPUT}; - for standard output",
    )
    flag(parser, "--stack-samples", "write StackSample packets, for Perfetto v58 and later")
    parser.add_argument(
        "-t",
        "--time",
        type=duration,
        metavar="10s",
        help="end after this time; else by Ctrl-C or SIGTERM",
    )
    options = parser.parse_args(list(arguments))
    if complaint := name_complaint(options.output):
        raise CommandError(f"attach: {complaint}.", 2)
    settings = settings_of(options)
    with open_output("attach", options.output, binary=True) as file:
        profile = Profile(settings, lambda packets: file.write(_compressed(packets)))
        profile.add(options.pid)
        stop_by_signal(profile)
        _tell(f"stretto: sampling process {options.pid}; Ctrl-C ends it")
        profile.run(options.pid, options.time)
        if profile.error is not None:
            raise profile.error
    print_summary(profile, settings, options.output)
    return 0


def _compressed(packets: bytes) -> bytes:
    """Return one packet that holds packets."""
    return bytes_field(_PACKET, bytes_field(_COMPRESSED_PACKETS, zlib.compress(packets, _FAST)))


def stop_by_signal(profile: Profile) -> None:
    """Let Ctrl-C, SIGTERM and SIGHUP end the profile instead of this process."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda _number, _frame: profile.stop())


def print_summary(profile: Profile, settings: Settings, path: str) -> None:
    """Print what was sampled, and the functions with most samples, to standard error.

    Args:
        profile: The profile, which has ended.
        settings: Its settings.
        path: The path of the trace.
    """
    period_ms = settings.period_ns / 1e6
    text = (
        f"{profile.sampled:,} samples of {profile.processes} "
        f"process{'es' if profile.processes != 1 else ''}; each is {period_ms:g} ms of "
        f"{MODES[settings.mode]}\n"
    )
    if slow := slow_text(settings, profile.longest):
        text += f"They were {slow}.\n"
    rows = [
        (
            f"{row.own * period_ms / 1000:.2f}",
            f"{row.total * period_ms / 1000:.2f}",
            row.key.function,
            row.key.filename,
        )
        for row in profile.functions()[:_TOP]
    ]
    if rows:
        text += "\n" + as_table(
            ("own s", "total s", "function", "file"), rows, right=("own s", "total s")
        )
    text += idle_hint(settings, profile.sampled + profile.torn + profile.late + profile.unseen)
    for label, number in (
        ("the stack changed", profile.torn),
        ("this process was late", profile.late),
        (NOT_SEEN, profile.unseen),
    ):
        if number:
            text += f"\n{number:,} samples are missing: {label}."
    text += "".join(f"\n{line}." for line in (*cut_lines(profile), *native_lines(profile)))
    for pid, problem in profile.problems.items():
        text += f"\n{pid} was not sampled: {problem}"
    place = "on the standard output" if path == STANDARD else f"in {path}"
    _tell(f"{text}\nThe trace is {place}.")


def cut_lines(profile: Profile) -> list[str]:
    """Return the line about the samples of deep stacks, without a full stop, if there are any."""
    if not profile.cut:
        return []
    return [f"{profile.cut:,} samples of deep stacks have the innermost 1,024 calls only"]


def idle_hint(settings: Settings, due: int) -> str:
    """Return a line about `--wall` if no thread was running; else "".

    Args:
        settings: The settings of the profile.
        due: The number of samples, with those that are missing.
    """
    if due or settings.mode == WALL:
        return ""
    return "No thread was running: with --wall, waiting threads are sampled, too.\n"


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
