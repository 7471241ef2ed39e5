"""The options of `stretto record`: their names, values and help texts.

Two parsers read this table: `arguments`, which parses complete and correct options, and
`help_parser`, which also prints the help and reports errors.
"""

from __future__ import annotations

from stretto.base.errors import ConfigError
from stretto.profilers.folded_code import IMPORTS
from stretto.recorder.host.options import DEFAULT_HEAP_INTERVAL, DEFAULT_SIZE_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

TIME_UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}

MAX_RATE_HZ = 20_000

CATEGORIES = {
    "functions": ("python.functions", "function calls"),
    "managers": ("python.managers", "context managers made of generators"),
    "gc": ("python.gc", "garbage collections"),
    "asyncio": ("python.asyncio", "lanes and steps of asyncio tasks"),
    "logs": ("python.log", "log records (they may hold secrets)"),
    "exceptions": ("python.exceptions", "uncaught exceptions"),
}
"""(category, description) for each option `--no-NAME`."""


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
        message = f"{text!r} isn't a time above 0: give a number and a unit, like 50us or 1.5s."
        if not unit and number.isascii() and number.isdecimal() and int(number):
            message = f"{text!r} isn't a time: the unit is missing, as in {number}ms or {number}s."
        raise ConfigError(message) from None


def parse_rate(text: str) -> int:
    """Return the period of a rate such as `1000hz`, in nanoseconds.

    Raises:
        ConfigError: the rate is malformed, or out of range.
    """
    digits, unit, rest = text.lower().partition("hz")
    valid = digits.isdecimal() and len(digits) <= 6 and 1 <= int(digits) <= MAX_RATE_HZ
    if not valid or not unit or rest:
        raise ConfigError(f"{text!r} is no rate from 1hz to {MAX_RATE_HZ}hz.")
    return 10**9 // int(digits)


def _positive(nanoseconds: float) -> int:
    if nanoseconds <= 0:
        raise ValueError
    return int(nanoseconds)


def _size(text: str) -> int:
    from stretto.client.recording import parse_size  # Most recordings need no size.

    return parse_size(text, "size")


def _sampling_interval(text: str) -> int:
    """Parse a size from 1 byte up; short numbers are sizes in bytes."""
    return int(text) if text.isdecimal() and 1 <= int(text) < 4096 else _size(text)


def _depth(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 1 << 20:
        raise ConfigError(f"{text!r}: give a number of frames from 1 to 1048576.")
    return int(text)


def _pid(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) < 1 << 31:
        raise ConfigError(f"{text!r}: give the number of a process.")
    return int(text)


class Option:
    """One option.

    Args:
        names: the short and the long name, separated by spaces.
        text: the help text.
        metavar: what the help shows for the value; "" if the option has none.
        parse: parses the value; raises ConfigError.
        default: the value without the option.
        choices: the valid values; empty if `parse` decides.
        repeatable: whether the values are collected in a list.
        bare: the value of the option without `=VALUE`; None if it needs a value.

    Attributes:
        key: the long name, with underscores.
        has_value: whether the next word is the value.
    """

    def __init__(
        self,
        names: str,
        text: str,
        metavar: str = "",
        parse: Callable[[str], object] = str,
        *,
        default: object = None,
        choices: Sequence[str] = (),
        repeatable: bool = False,
        bare: object = None,
    ) -> None:
        self.names = names.split()
        self.key = self.names[-1][2:].replace("-", "_")
        self.text = text
        self.metavar = metavar
        self.has_value = bare is None and bool(metavar or choices)
        self.parse = parse
        self._default = default
        self.choices = choices
        self.repeatable = repeatable
        self.bare = bare

    @property
    def default(self) -> object:
        """The value without the option."""
        if self.repeatable:
            return []
        return self._default if self.metavar or self.choices else False


class Group:
    """Options with a heading in the help.

    Args:
        title: the heading; "" for options without a heading.
        options: the options.
        text: the text below the heading.
    """

    def __init__(self, title: str, *options: Option, text: str | None = None) -> None:
        self.title = title
        self.options = options
        self.text = text


OUTPUT = Group(
    "output",
    Option(
        "-o --output",
        "the trace (default: trace.pftrace); `-` is standard output: then the program's own "
        "output goes to standard error; `-` and FIFOs are written directly",
        "OUT",
        default="trace.pftrace",
    ),
    Option("--buffer", "with --ring: size of the buffer (64mb)", "SIZE", _size),
    Option(
        "--auto",
        "auto detail, the default on CPython 3.12 and later: the whole run; calls that are "
        "long enough to be seen are shown, the others are counted",
    ),
    Option(
        "--size",
        "with --auto: the largest size of the trace (256mb): as it grows, less is shown",
        "SIZE",
        _size,
        default=DEFAULT_SIZE_BYTES,
    ),
    Option("--full", "every call up to --max-depth, written to OUT all along"),
    Option(
        "--ring",
        "every call, the last that fit into --buffer; the default with --buffer, --c-functions, "
        "--log-args, --log-result, --min-duration, --max-depth, --attach and --system",
    ),
    Option("--stream", "the same as --full"),
    Option("--max-size", "with --full: end at this size", "SIZE", _size),
    Option(
        "-t --duration",
        "end the recording, not the program, after this time (10s, 2m)",
        "TIME",
        parse_time_ns,
    ),
)

CONTENTS = Group(
    "contents",
    *(Option(f"--no-{name}", f"don't record {text}") for name, (_, text) in CATEGORIES.items()),
    Option("--no-args", "don't record arguments on command lines"),
    Option(
        "--no-source",
        "don't record source text, which only stacks of log records hold (stack_info); for the "
        "source pane see `stretto view --no-source`",
    ),
    Option("--no-counters", "don't record memory and CPU of processes"),
    Option(
        "--flows",
        "also record requests of HTTP and gRPC, with arrows from client to server; adds a "
        "header to requests without a traceparent",
    ),
    *(
        Option(
            f"--log-{name}",
            f"record the {text} of calls, shortened, without those that sound like secrets; "
            "on CPython 3.12 and later",
        )
        for name, text in (("args", "arguments"), ("result", "results"))
    ),
    Option(
        "--sched",
        "also record when the program's threads run, and what wakes them; needs root and tracefs",
    ),
    Option(
        "--waits",
        "also record waits for locks: where the lock was made, and who held it; and what blocked "
        "event loops of asyncio",
    ),
    Option(
        "--gil-waits",
        "also record waits for the GIL: when a thread waited, and which thread held it",
    ),
    Option(
        "--io-waits",
        "also record waits of 1 ms or longer for files, peers and timers, with their names: in all "
        "system calls with root and tracefs, else in Python's own functions",
    ),
    Option(
        "--sample",
        "instead of function calls, record the stacks of threads that run, at this rate of CPU "
        "time (1000hz); with --data-source python.wall of all threads, with python.gil of the "
        "one that holds the GIL",
        "RATE",
        parse_rate,
    ),
    Option(
        "--stack-samples",
        "with --sample, write StackSample packets instead of PerfSample: for Perfetto v58 and "
        "later",
    ),
    Option(
        "--native",
        "with --sample, show C functions, too: a thread that runs is stopped for each sample, for "
        "about 60 µs; at most 5 % of the time",
    ),
    Option(
        "--heap",
        "also record which calls hold memory: a sample of Python's allocations per BYTES (64k; "
        "for another size: --heap=4k), with their stacks; frees are followed",
        "BYTES",
        _sampling_interval,
        bare=DEFAULT_HEAP_INTERVAL,
    ),
    Option(
        "--native-heap",
        "also record which calls of C, C++ or Rust code hold memory of malloc, in any program: a "
        "sample per BYTES (64k), with their stacks; frees are followed",
        "BYTES",
        _sampling_interval,
        bare=DEFAULT_HEAP_INTERVAL,
    ),
    Option(
        "--heap-every",
        "with --heap or --native-heap: time between two dumps (10s); the last one is of the end",
        "TIME",
        parse_time_ns,
    ),
    Option(
        "--heap-max",
        "with --heap or --native-heap: one dump, of the moment when most memory was held",
    ),
    Option(
        "--object-graph",
        "also record all objects at the end, with their sizes and references: who holds the memory",
    ),
    Option("--cpu", "read the thread's CPU time at each call: exact thread_dur"),
    Option("--c-functions", "also record calls of functions written in C"),
    Option(
        "--category",
        "also record this category, which is slow or for debugging, and off by default "
        "(rpc.transport); repeatable",
        "NAME",
        repeatable=True,
    ),
    Option(
        "--my-code",
        "only record functions of your code, which is neither in the standard library nor in "
        "site-packages, and those that it calls directly",
    ),
    *(
        Option(
            f"--{name}",
            f"{verb} functions of this module (app.db), file or folder (src/app); repeatable",
            "PATTERN",
            repeatable=True,
        )
        for name, verb in (("include", "only record"), ("exclude", "don't record"))
    ),
    Option("--min-duration", "leave out calls shorter than this (50us)", "TIME", parse_time_ns),
    Option(
        "--imports",
        "full: also the calls of the import system; folded: only the bodies of imported "
        "modules; off: neither (default: folded, with --full full)",
        choices=IMPORTS,
    ),
    Option("--max-depth", "leave out calls nested deeper (400)", "N", _depth),
)

ATTACH = Group(
    "a program that runs already",
    Option("--attach", "record this process", "PID", _pid),
    text="CPython 3.14 or newer, of this user. A script is injected that switches tracing on:\n"
    "every call, task and log record from now on is recorded, of this process alone.\n"
    "Ctrl-C or --duration ends the recording, and the program runs on; only loaded modules\n"
    "stay in it. This is tracing, not sampling: it runs code in the program.",
)

SYSTEM = Group(
    "system-wide recording",
    Option("--system", "record by the service, which must run"),
    Option(
        "--data-source",
        "with --system: also record this data source of all producers; repeatable; see --sample",
        "NAME",
        repeatable=True,
    ),
    Option(
        "--config",
        "with --system: add the data sources and buffers of this TraceConfig in text form",
        "FILE",
    ),
    text="The program is recorded by the machine's tracing service (`stretto traced`), with\n"
    "the track events of all other processes that are connected to it. Functions, logs\n"
    "and the like are recorded only in the program.",
)

QUIET = Group("", Option("-q --quiet", "no progress, no summary"))

GROUPS = (OUTPUT, CONTENTS, ATTACH, SYSTEM, QUIET)
