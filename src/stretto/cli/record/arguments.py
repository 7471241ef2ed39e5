"""Parses the options of `stretto record`.

Options end at `--`, the script, `-m` or `-c`; the following words belong to the program.
"""

from __future__ import annotations

import argparse
import sys

from stretto.base.errors import CommandError, ConfigError
from stretto.cli.verb_parser import USAGE_EXIT_CODE, VerbParser
from stretto.client.recording import parse_size
from stretto.profilers.folded_code import IMPORTS
from stretto.recorder.host.options import (
    DEFAULT_BUFFER_BYTES,
    DEFAULT_SIZE_BYTES,
    RecordingOptions,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

DESCRIPTION = """\
Run a program and record it, with all its child processes, into a Perfetto trace.

  stretto record app.py --its-own options      a script
  stretto record -m package.module             a module
  stretto record -c 'print("hello")'           code
  stretto record -- pytest -x tests            any command found on PATH
  stretto record -o web.pftrace gunicorn -w 4 app:app
  stretto record --attach 1234                 what process 1234 does from now on

The program runs as without Stretto: same arguments, same output, same exit status. On CPython 3.12
and later the trace has the whole run, with every call that is long enough to be seen (--auto); on
3.11 it has every call of the run's last part (--ring).
Open the trace with `stretto view`, or at https://ui.perfetto.dev.
"""

EPILOG = """\
while it runs:
  kill -USR2 RECORDER     writes the trace up to now into a file, and continues recording
if the recorder was killed:
  OUT.part is a trace as it is; with --ring, `stretto recover OUT.ring` makes one
"""

TIME_UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}

CATEGORIES = {
    "functions": ("python.functions", "function calls"),
    "gc": ("python.gc", "garbage collections"),
    "asyncio": ("python.asyncio", "lanes and steps of asyncio tasks"),
    "logs": ("python.log", "log records (they may hold secrets)"),
    "exceptions": ("python.exceptions", "uncaught exceptions"),
}
"""(category, description) for each option `--no-NAME`."""


NOT_AUTO = (
    "buffer", "c_functions", "log_args", "log_result", "min_duration", "max_depth", "attach",
    "system",
)  # fmt: skip
"""Options that auto detail doesn't have: with one of them, a ring is the default."""

DEFAULT_MODE = "auto" if sys.version_info >= (3, 12) else "ring"


PRIVATE = {"no_args": "command lines (--no-args)", "no_logs": "log records (--no-logs)"}
"""What a trace may hold that is private, by the option that leaves it out."""


def parse_time_ns(text: str) -> int:
    """Parse a time with a unit, like "50us" or "1.5s", into nanoseconds.

    Raises:
        ConfigError: the unit is missing or unknown, or the time isn't above 0.
    """
    number = text.strip().rstrip("nusmh")
    unit = text.strip()[len(number) :]
    try:
        return _positive(float(number) * TIME_UNITS[unit])
    except (KeyError, ValueError, OverflowError):
        message = f"{text!r} isn't a time: give a number and a unit, like 50us, 1.5s or 2m."
        raise ConfigError(message) from None


def _positive(nanoseconds: float) -> int:
    if nanoseconds <= 0:
        raise ValueError
    return int(nanoseconds)


def _depth(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 1 << 20:
        raise argparse.ArgumentTypeError(f"{text!r}: give a number of frames from 1 to 1048576")
    return int(text)


def _pid(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) < 1 << 31:
        raise argparse.ArgumentTypeError(f"{text!r}: give the number of a process")
    return int(text)


def _size(text: str) -> int:
    try:
        return parse_size(text, "size")
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error).rstrip(".")) from error


def _time(text: str) -> int:
    try:
        return parse_time_ns(text)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error).rstrip(".")) from error


def _make_parser() -> VerbParser:
    parser = VerbParser(
        "record",
        DESCRIPTION,
        usage="stretto record [options] [--] app.py | -m module | -c code | command  [arguments]",
        epilog=EPILOG,
    )
    _add_output_options(parser)
    _add_content_options(parser)
    _add_attach_options(parser)
    _add_system_options(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress, no summary")
    return parser


def _add_output_options(parser: VerbParser) -> None:
    add = parser.add_argument_group("output").add_argument
    add(
        "-o",
        "--output",
        metavar="OUT",
        default="trace.pftrace",
        help="the trace (default: trace.pftrace); `-` is standard output: then the program's own "
        "output goes to standard error; `-` and FIFOs are written directly",
    )
    add(
        "--buffer",
        metavar="SIZE",
        type=_size,
        help="with --ring: size of the buffer (64mb)",
    )
    add(
        "--auto",
        action="store_true",
        help="auto detail, the default on CPython 3.12 and later: the whole run; calls that are "
        "long enough to be seen are shown, the others are counted",
    )
    add(
        "--size",
        metavar="SIZE",
        type=_size,
        default=DEFAULT_SIZE_BYTES,
        help="with --auto: the largest size of the trace (256mb): as it grows, less is shown",
    )
    add("--full", action="store_true", help="every call, written to OUT all along")
    add(
        "--ring",
        action="store_true",
        help="every call, the last that fit into --buffer; the default on CPython 3.11, and with "
        "--buffer, --c-functions, --log-args, --log-result, --min-duration, --max-depth, --attach "
        "and --system",
    )
    add("--stream", action="store_true", help="the same as --full")
    add("--max-size", metavar="SIZE", type=_size, help="with --full: end at this size")
    add(
        "-t",
        "--duration",
        metavar="TIME",
        type=_time,
        help="end the recording, not the program, after this time (10s, 2m)",
    )


def _add_content_options(parser: VerbParser) -> None:
    add = parser.add_argument_group("contents").add_argument
    for name, (_, text) in CATEGORIES.items():
        add(f"--no-{name}", action="store_true", help=f"don't record {text}")
    add("--no-args", action="store_true", help="don't record arguments on command lines")
    add("--no-counters", action="store_true", help="don't record memory and CPU of processes")
    add(
        "--flows",
        action="store_true",
        help="also record requests of HTTP and gRPC, with arrows from client to server; adds a "
        "header to requests without a traceparent",
    )
    for name, text in (("args", "arguments"), ("result", "results")):
        add(
            f"--log-{name}",
            action="store_true",
            help=f"record the {text} of calls, shortened, without those that sound like secrets; "
            "on CPython 3.12 and later",
        )
    add(
        "--cpu",
        action="store_true",
        help="read the thread's CPU time at each call: exact thread_dur",
    )
    add("--c-functions", action="store_true", help="also record calls of functions written in C")
    add(
        "--category",
        metavar="NAME",
        action="append",
        default=[],
        help="also record this category, which is slow or for debugging, and off by default "
        "(rpc.transport); repeatable",
    )
    add(
        "--my-code",
        action="store_true",
        help="only record functions of your code, which is neither in the standard library nor in "
        "site-packages, and those that it calls directly",
    )
    for name, verb in (("include", "only record"), ("exclude", "don't record")):
        add(
            f"--{name}",
            metavar="PATTERN",
            action="append",
            default=[],
            help=f"{verb} functions of this module (app.db), file or folder (src/app); repeatable",
        )
    add(
        "--min-duration",
        metavar="TIME",
        type=_time,
        help="leave out calls shorter than this (50us)",
    )
    add(
        "--imports",
        choices=IMPORTS,
        help="full: also the calls of the import system; folded: only the bodies of imported "
        "modules; off: neither (default: folded, with --full full)",
    )
    add("--max-depth", metavar="N", type=_depth, help="leave out calls nested deeper (400)")


def _add_attach_options(parser: VerbParser) -> None:
    group = parser.add_argument_group(
        "a program that runs already",
        "CPython 3.14 or newer, of this user. A script is injected that switches tracing on:\n"
        "every call, task and log record from now on is recorded, of this process alone.\n"
        "Ctrl-C or --duration ends the recording, and the program runs on; only loaded modules\n"
        "stay in it. This is tracing, not sampling: it runs code in the program.",
    )
    group.add_argument("--attach", metavar="PID", type=_pid, help="record this process")


def _add_system_options(parser: VerbParser) -> None:
    group = parser.add_argument_group(
        "system-wide recording",
        "The program is recorded by the machine's tracing service (`stretto traced`), with\n"
        "the track events of all other processes that are connected to it. Functions, logs\n"
        "and the like are recorded only in the program.",
    )
    add = group.add_argument
    add("--system", action="store_true", help="record by the service, which must run")
    add(
        "--data-source",
        metavar="NAME",
        action="append",
        default=[],
        help="with --system: also record this data source of all producers; repeatable",
    )
    add(
        "--config",
        metavar="FILE",
        help="with --system: add the data sources and buffers of this TraceConfig in text form",
    )


def _takes_value(parser: VerbParser, option: str) -> bool:
    action = parser._option_string_actions.get(option)  # noqa: SLF001  # argparse has no public API
    return action is not None and action.nargs != 0


def split(parser: VerbParser, arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split a command line into the options, and the program with its arguments."""
    index = 0
    while index < len(arguments):
        word = arguments[index]
        if word == "--":
            return list(arguments[:index]), list(arguments[index + 1 :])
        if word == "-" or not word.startswith("-") or word[:2] in ("-m", "-c"):
            break
        index += 2 if _takes_value(parser, word) else 1
    return list(arguments[:index]), list(arguments[index:])


class RecordOptions:
    """The parsed command line of `stretto record`.

    Args:
        arguments: the words after `record`.

    Attributes:
        output: the path of the trace; `-` is standard output.
        quiet: print neither progress nor summary.
        private: kinds of private data that the trace may contain.
        program: the command line of the program.
        recording: the options for the recorder.

    Raises:
        CommandError: an option is unknown or invalid, or options contradict each other.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        parser = _make_parser()
        own, self.program = split(parser, arguments)
        parsed = parser.parse_args(own)
        self.output: str = parsed.output
        self.quiet: bool = parsed.quiet
        self.private = [text for name, text in PRIVATE.items() if not getattr(parsed, name)]
        if parsed.log_args or parsed.log_result:
            self.private.append("arguments or results of calls")
        mode = _mode(parsed)
        if parsed.max_size is not None and mode != "full":
            raise CommandError(
                "record: --max-size goes with --full; --size limits auto detail, --buffer a ring.",
                USAGE_EXIT_CODE,
            )
        self.recording = _recording_options(parsed, mode)
        self._check()

    def _check(self) -> None:
        recording = self.recording
        if recording.attach:
            self._check_attach()
        elif not self.program:
            raise CommandError(
                "record: name the program: a script, -m module, -c code or a command. "
                "`stretto record --help` shows examples.",
                USAGE_EXIT_CODE,
            )
        if (recording.config_path or recording.data_sources) and not recording.system:
            raise CommandError("record: --config and --data-source go with --system.", 2)

    def _check_attach(self) -> None:
        if self.program:
            raise CommandError(
                "record: --attach records a program that runs already; don't name another one.",
                USAGE_EXIT_CODE,
            )
        if self.recording.system:
            raise CommandError("record: --attach doesn't go with --system.", USAGE_EXIT_CODE)


def _mode(parsed: argparse.Namespace) -> str:
    """Return `auto`, `full` or `ring`."""
    modes = [name for name in ("auto", "full", "ring", "stream") if getattr(parsed, name)]
    if len(modes) > 1 and modes != ["full", "stream"]:
        names = " and ".join(f"--{name}" for name in modes)
        raise CommandError(f"record: {names}: choose one.", USAGE_EXIT_CODE)
    others = [name for name in NOT_AUTO if getattr(parsed, name)]
    if modes == ["auto"] and others:
        other = others[0].replace("_", "-")
        raise CommandError(f"record: --auto doesn't go with --{other}.", USAGE_EXIT_CODE)
    if modes:
        return "full" if modes[0] == "stream" else modes[0]
    return "ring" if others else DEFAULT_MODE


def _recording_options(parsed: argparse.Namespace, mode: str) -> RecordingOptions:
    categories = [
        category for name, (category, _) in CATEGORIES.items() if not getattr(parsed, f"no_{name}")
    ]
    return RecordingOptions(
        buffer_bytes=parsed.buffer or DEFAULT_BUFFER_BYTES,
        stream=mode != "ring",
        max_size=parsed.size if mode == "auto" else parsed.max_size,
        auto_size=parsed.size if mode == "auto" else 0,
        duration_ms=-(-(parsed.duration or 0) // 10**6),
        categories=categories + parsed.category,
        counters=not parsed.no_counters,
        target=_target_options(parsed, mode),
        system=parsed.system,
        config_path=parsed.config or "",
        data_sources=parsed.data_source,
        attach=parsed.attach or 0,
    )


def _target_options(parsed: argparse.Namespace, mode: str) -> dict[str, list[str]]:
    options: dict[str, list[str]] = {"include": parsed.include, "exclude": parsed.exclude}
    if parsed.min_duration is not None:
        options["min_duration_ns"] = [str(parsed.min_duration)]
    if parsed.max_depth is not None:
        options["max_depth"] = [str(parsed.max_depth)]
    if imports := parsed.imports or (IMPORTS[0] if parsed.full or parsed.stream else ""):
        options["imports"] = [imports]
    if parsed.flows:
        options["flows"] = ["1"]
    if parsed.no_args:
        options["no_args"] = ["1"]
    for name in ("c_functions", "log_args", "log_result", "my_code", "cpu"):
        if getattr(parsed, name):
            options[name] = ["1"]
    if mode == "auto":
        options["auto_detail"] = ["1"]
    return options
