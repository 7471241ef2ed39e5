"""The options of `stretto trace`, which are those of the command `perfetto`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from stretto.cli.verb_parser import VerbParser, flag, repeatable

if TYPE_CHECKING:
    from collections.abc import Sequence

USAGE_EXIT_CODE = 1
DEFAULT_OUT = "trace.pftrace"

DESCRIPTION = """\
Record the producers of this machine: Python programs that are connected
(`stretto.connect()`, STRETTO_CONNECT=1), Chromium, and programs with Perfetto's SDK.

  stretto traced --background                     start the service, once
  stretto trace -c config.pbtxt --txt -o out.pftrace
  stretto trace --category shop -t 5s             light mode: track events, to trace.pftrace
  stretto trace -t 5s -o out.pftrace sched gfx    light mode: atrace categories, ftrace events
  stretto trace --query                           show producers, data sources and sessions

A config in text form, for the track events of all processes in five seconds:

  duration_ms: 5000
  buffers { size_kb: 65536 }
  data_sources { config { name: "track_event" } }

Ctrl-C ends a recording early, and saves it.
"""

EPILOG = """\
Exit codes: 0: the trace is written, or the service refused and the reason was printed; 1: there
is no trace; 2: there is no detached session of that name, or with --background-wait the data
sources took longer than 30 s to start.
The service's address is in PERFETTO_CONSUMER_SOCK_NAME. docs/trace.md describes more.
"""


def make_parser() -> VerbParser:
    """Makes the parser of `stretto trace`."""
    parser = VerbParser("trace", DESCRIPTION, epilog=EPILOG, exit_code=USAGE_EXIT_CODE)
    _add_recording(parser.add_argument_group("recording"))
    _add_light_mode(parser.add_argument_group("light mode, without a config"))
    _add_sessions(parser.add_argument_group("running sessions"))
    _add_statsd(parser.add_argument_group("metadata for automated use"))
    flag(parser, "--version", "print the version")
    return parser


def _add_recording(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "-c",
        "--config",
        metavar="FILE",
        help="the TraceConfig; - is standard input, :test a built-in config of 2 s",
    )
    flag(group, "--txt", "the config is in text form")
    flag(group, "--txt-lossy", "the same, but unknown fields are ignored instead of refused")
    add("-o", "--out", metavar="FILE", help="the output file; - is standard output")
    flag(group, "--no-clobber", "refuse to overwrite a file")
    flag(group, "-d --background", "run in the background; print the pid")
    flag(
        group,
        "-D --background-wait",
        "the same, and return when all data sources have started, or after 30 s",
    )
    add(
        "--notify-fd",
        type=int,
        metavar="FD",
        help="write a byte to FD when all data sources have started: 0, or 1 after a failure",
    )
    flag(group, "--no-guardrails", "ask the service to ignore its guardrails")
    repeatable(group, "--add-attribute", "KEY[=VALUE]", "store an attribute in the trace")


def _add_light_mode(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("-t", "--time", metavar="N[s|ms|m|h]", help="duration (default: 10s)")
    add("-b", "--buffer", metavar="N[mb|kb|gb]", help="size of the buffer (default: 32mb)")
    add("-s", "--size", metavar="N[mb|kb|gb]", help="write the file while recording, up to this")
    repeatable(
        group, "--category", "NAME", f"category of track events; default of -o: {DEFAULT_OUT}"
    )
    repeatable(group, "-a --app", "NAME", "atrace app")
    add("events", nargs="*", metavar="EVENT", help="ftrace event (group/name) or atrace category")


def _add_sessions(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--detach", metavar="KEY", help="start a session that continues without this command")
    add("--attach", metavar="KEY", help="take over a detached session")
    flag(group, "--stop", "with --attach: end the session")
    add(
        "--is_detached",
        "--is-detached",
        metavar="KEY",
        help="test for a detached session: exit code 0 if there is one, else 2",
    )
    add("--clone", type=int, metavar="ID", help="save a copy of a running session")
    add("--clone-by-name", metavar="NAME", help="the same, by its unique_session_name")
    flag(group, "--clone-for-bugreport", "with --clone: without the trace filter")
    flag(
        group, "--save-for-bugreport", "save a copy of the session with the highest bugreport_score"
    )
    flag(group, "--save-all-for-bugreport", "save copies of all sessions with a bugreport_score")
    flag(group, "--query", "print producers, data sources and sessions")
    flag(group, "--long", "with --query: print all categories")
    flag(group, "--query-raw", "the same, as an encoded TracingServiceState")


def _add_statsd(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    for name in ("alert-id", "config-id", "config-uid", "subscription-id"):
        add(f"--{name}", type=int, default=0, metavar="N", help="stored in the trace")
    flag(group, "--upload", argparse.SUPPRESS)
    add("--dropbox", metavar="TAG", help=argparse.SUPPRESS)
    flag(group, "--reset-guardrails", "no effect; exit code 0")


class TraceOptions(argparse.Namespace):
    """The parsed command line; see `--help`."""

    @property
    def in_background(self) -> bool:
        return bool(self.background or self.background_wait)

    @property
    def is_query(self) -> bool:
        """Whether the service's state is queried."""
        return bool(self.query or self.query_raw)

    @property
    def clones(self) -> bool:
        return self.clone is not None or self.clone_by_name is not None

    @property
    def saves_bugreport(self) -> bool:
        return bool(self.save_for_bugreport or self.save_all_for_bugreport)

    @property
    def light(self) -> bool:
        """Whether there are options of the light mode."""
        values = (self.time, self.buffer, self.size)
        return any(value is not None for value in values) or bool(
            self.category or self.app or self.events
        )

    @property
    def attaches(self) -> bool:
        return self.attach is not None or self.is_detached is not None

    @property
    def takes_config(self) -> bool:
        """Whether -c is allowed. Commands that copy a session accept a config, and ignore it."""
        return not (self.attaches or self.is_query or self.save_all_for_bugreport)

    @property
    def needs_config(self) -> bool:
        """Whether the command starts a session, for which it needs a config."""
        return self.takes_config and not (self.clones or self.saves_bugreport)


def parse(arguments: Sequence[str]) -> TraceOptions:
    """Parse the command line.

    Raises:
        CommandError: the command line is wrong; the exit code is 1.
    """
    parser = make_parser()
    options = parser.parse_intermixed_args(list(arguments), TraceOptions())
    if options.version or options.reset_guardrails:
        return options
    if options.category and options.needs_config and options.out is None:
        options.out = DEFAULT_OUT
    for wrong, complaint in [*_session_complaints(options), *_copy_complaints(options)]:
        if wrong:
            parser.error(complaint)
    return options


def _session_complaints(options: TraceOptions) -> list[tuple[bool, str]]:
    """Return (whether violated, error message) for each rule about combinations of options."""
    o = options
    keys = (o.detach, o.attach, o.is_detached)
    return [
        (o.upload or o.dropbox is not None, "--upload and --dropbox are for Android"),
        ("" in keys, "--detach, --attach and --is_detached need a key"),
        (
            o.is_query and (o.detach is not None or o.attaches or o.in_background),
            "--query excludes --detach, --attach and -d",
        ),
        (o.long and not o.is_query, "--long needs --query"),
        (o.attaches and o.detach is not None, "--attach excludes --detach"),
        (o.txt and o.txt_lossy, "--txt excludes --txt-lossy"),
        (o.detach is not None and o.in_background, "--detach returns at once: leave -d out"),
        (o.stop and not o.attaches, "--stop needs --attach KEY"),
        (
            any(word.startswith("=") or not word for word in o.add_attribute),
            "--add-attribute KEY=VALUE: the key is missing",
        ),
        (o.light and not o.takes_config, "the light mode starts a session: leave its options out"),
        (not o.takes_config and o.out is not None, "this writes no file: leave -o out"),
        (
            o.needs_config and o.config is None and not o.light,
            "give a config with -c, or events to record",
        ),
    ]


def _copy_complaints(options: TraceOptions) -> list[tuple[bool, str]]:
    """Return (whether violated, error message) for each rule about copies of sessions."""
    o = options
    detached = o.detach is not None or o.attaches
    return [
        (
            o.saves_bugreport and (detached or o.is_query or o.light or o.background_wait),
            "--save-for-bugreport excludes options for sessions, light mode and --background-wait",
        ),
        (
            o.save_for_bugreport and o.out is not None,
            "--save-for-bugreport chooses its output file: leave -o out",
        ),
        (
            o.save_for_bugreport and o.save_all_for_bugreport,
            "--save-for-bugreport excludes --save-all-for-bugreport",
        ),
        (o.clones and o.detach is not None, "--clone excludes --detach"),
        (o.clone is not None and o.clone_by_name is not None, "--clone excludes --clone-by-name"),
        (o.clone is not None and o.clone >= 1 << 64, "--clone needs the id of a session"),
        (o.clone_by_name == "", "--clone-by-name needs a name"),
        (o.clone_for_bugreport and not o.clones, "--clone-for-bugreport needs --clone ID"),
        (
            o.clones and o.takes_config and not o.saves_bugreport and o.out is None,
            "give the output file with -o",
        ),
    ]
