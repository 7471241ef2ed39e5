"""Parses the command line of `stretto record`.

Options end at `--`, the script, `-m` or `-c`; the following words belong to the program.
"""

from __future__ import annotations

from stretto.base.errors import CommandError, ConfigError
from stretto.cli.record.options import CATEGORIES, GROUPS
from stretto.profilers.folded_code import IMPORTS
from stretto.recorder.host.options import (
    DEFAULT_BUFFER_BYTES,
    DEFAULT_DUMP_INTERVAL_MS,
    HeapOptions,
    RecordingOptions,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

USAGE_EXIT_CODE = 2

NOT_AUTO = (
    "buffer", "c_functions", "log_args", "log_result", "min_duration", "max_depth", "attach",
    "system",
)  # fmt: skip
"""Options that auto detail doesn't have: with one of them, a ring is the default."""

NOT_SAMPLED = (
    "auto", "full", "ring", "stream", "buffer", "c_functions", "cpu", "log_args", "log_result",
    "min_duration", "max_depth", "my_code", "include", "exclude", "imports", "attach", "system",
)  # fmt: skip
"""Options that don't go with samples: most are about function calls."""

SAMPLES = ("python.cpu", "python.wall", "python.gil")
"""The data sources of samples; the first is the default."""

WAITS = ("python.waits", "python.loops")
"""The categories of `--waits`."""

GIL_WAITS = "python.gil_waits"
"""The category of `--gil-waits`."""

PRIVATE = {
    "no_args": "command lines (--no-args)",
    "no_logs": "log records (--no-logs)",
    "no_exceptions": "messages of exceptions, if any (--no-exceptions)",
}
"""What a trace may hold that is private, by the option that leaves it out."""

OPTIONS = {name: each for group in GROUPS for each in group.options for name in each.names}
"""All options by their names."""


def split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split a command line into the options, and the program with its arguments."""
    index = 0
    while index < len(words):
        word = words[index]
        if word == "--":
            return list(words[:index]), list(words[index + 1 :])
        if word == "-" or not word.startswith("-") or word[:2] in ("-m", "-c"):
            break
        option = OPTIONS.get(word)
        index += 2 if option is not None and option.has_value else 1
    return list(words[:index]), list(words[index:])


def _parse(words: Sequence[str]) -> dict[str, Any]:
    """Return the values of all options, by name.

    Raises:
        CommandError: an option is unknown or invalid.
    """
    try:
        return _parse_simple(words)
    except (KeyError, StopIteration, ConfigError):
        from stretto.cli.record import help_parser

        return help_parser.parse(words)


def _parse_simple(words: Sequence[str]) -> dict[str, Any]:
    """Parse options that are complete words, with their values in the following words.

    Raises:
        KeyError, StopIteration, ConfigError: an option has another form, or is wrong.
    """
    values: dict[str, Any] = {each.key: each.default for each in OPTIONS.values()}
    rest = iter(words)
    for word in rest:
        option = OPTIONS[word]
        if not option.has_value:
            values[option.key] = True if option.bare is None else option.bare
            continue
        text = next(rest)
        if text.startswith("-") and text != "-":
            raise KeyError(text)
        if option.choices and text not in option.choices:
            raise KeyError(text)
        value = option.parse(text)
        values[option.key] = [*values[option.key], value] if option.repeatable else value
    return values


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
        own, self.program = split(arguments)
        parsed = _parse(own)
        self.output: str = parsed["output"]
        self.quiet: bool = parsed["quiet"]
        self.private = [text for name, text in PRIVATE.items() if not parsed[name]]
        if parsed["log_args"] or parsed["log_result"]:
            self.private.append("arguments or results of calls")
        mode = _mode(parsed)
        if parsed["max_size"] is not None and mode not in ("full", "sample"):
            raise CommandError(
                "record: --max-size goes with --full and --sample; --size limits auto detail, "
                "--buffer a ring.",
                USAGE_EXIT_CODE,
            )
        self.recording = _recording_options(parsed, mode)
        self._check()
        self._check_heap(parsed)

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
            raise CommandError(
                "record: --config and --data-source go with --system; with --sample, "
                f"--data-source is one of {', '.join(SAMPLES)}.",
                USAGE_EXIT_CODE,
            )
        for name in ("stack_samples", "native"):
            if getattr(recording, name) and not recording.sample_ns:
                option = name.replace("_", "-")
                raise CommandError(f"record: --{option} goes with --sample.", USAGE_EXIT_CODE)
        if recording.sched and recording.system:
            raise CommandError(
                "record: --sched doesn't go with --system: there, "
                "--data-source linux.ftrace records the scheduling of the whole machine.",
                USAGE_EXIT_CODE,
            )

        if recording.io_waits and recording.system:
            raise CommandError("record: --io-waits doesn't go with --system.", USAGE_EXIT_CODE)

    def _check_heap(self, parsed: dict[str, Any]) -> None:
        for name in ("heap_every", "heap_max"):
            if parsed[name] and not (parsed["heap"] or parsed["native_heap"]):
                option = name.replace("_", "-")
                raise CommandError(
                    f"record: --{option} goes with --heap and --native-heap.", USAGE_EXIT_CODE
                )
        if parsed["heap_every"] and parsed["heap_max"]:
            raise CommandError("record: --heap-every and --heap-max: choose one.", USAGE_EXIT_CODE)
        for name in ("attach", "system"):
            if parsed["native_heap"] and parsed[name]:
                raise CommandError(
                    f"record: --native-heap doesn't go with --{name}.", USAGE_EXIT_CODE
                )

    def _check_attach(self) -> None:
        if self.program:
            raise CommandError(
                "record: --attach records a program that runs already; don't name another one.",
                USAGE_EXIT_CODE,
            )
        if self.recording.system:
            raise CommandError("record: --attach doesn't go with --system.", USAGE_EXIT_CODE)


def _mode(parsed: dict[str, Any]) -> str:
    """Return `sample`, `auto`, `full` or `ring`."""
    if parsed["sample"]:
        _check_samples(parsed)
        return "sample"
    modes = [name for name in ("auto", "full", "ring", "stream") if parsed[name]]
    if len(modes) > 1 and modes != ["full", "stream"]:
        names = " and ".join(f"--{name}" for name in modes)
        raise CommandError(f"record: {names}: choose one.", USAGE_EXIT_CODE)
    others = [name for name in NOT_AUTO if parsed[name]]
    if modes == ["auto"] and others:
        other = others[0].replace("_", "-")
        raise CommandError(f"record: --auto doesn't go with --{other}.", USAGE_EXIT_CODE)
    if modes:
        return "full" if modes[0] == "stream" else modes[0]
    return "ring" if others else "auto"


def _check_samples(parsed: dict[str, Any]) -> None:
    for name in NOT_SAMPLED:
        if parsed[name]:
            option = name.replace("_", "-")
            hint = ": `stretto attach PID` samples what runs already" if name == "attach" else ""
            raise CommandError(
                f"record: --sample doesn't go with --{option}{hint}.", USAGE_EXIT_CODE
            )


def _recording_options(parsed: dict[str, Any], mode: str) -> RecordingOptions:
    categories = [
        category for name, (category, _) in CATEGORIES.items() if not parsed[f"no_{name}"]
    ]
    waits = [*WAITS] * parsed["waits"] + [GIL_WAITS] * parsed["gil_waits"]
    samples: list[str] = []
    data_sources = parsed["data_source"]
    if mode == "sample":
        categories.remove(CATEGORIES["functions"][0])
        samples = [name for name in SAMPLES if name in data_sources] or [SAMPLES[0]]
        data_sources = [name for name in data_sources if name not in SAMPLES]
    return RecordingOptions(
        buffer_bytes=parsed["buffer"] or DEFAULT_BUFFER_BYTES,
        stream=mode != "ring",
        max_size=parsed["size"] if mode == "auto" else parsed["max_size"],
        auto_size=parsed["size"] if mode == "auto" else 0,
        duration_ms=-(-(parsed["duration"] or 0) // 10**6),
        categories=categories + waits + parsed["category"],
        counters=not parsed["no_counters"],
        sched=parsed["sched"],
        io_waits=parsed["io_waits"],
        sample_ns=parsed["sample"] or 0,
        sample_sources=samples,
        stack_samples=parsed["stack_samples"],
        native=parsed["native"],
        heap=_heap_options(parsed, "heap"),
        native_heap=_heap_options(parsed, "native_heap"),
        object_graph=parsed["object_graph"],
        target=_target_options(parsed, mode),
        system=parsed["system"],
        config_path=parsed["config"] or "",
        data_sources=data_sources,
        attach=parsed["attach"] or 0,
    )


def _heap_options(parsed: dict[str, Any], name: str) -> HeapOptions | None:
    if not parsed[name]:
        return None
    every_ns = parsed["heap_every"] or DEFAULT_DUMP_INTERVAL_MS * 10**6
    return HeapOptions(parsed[name], max(1, every_ns // 10**6), parsed["heap_max"])


def _target_options(parsed: dict[str, Any], mode: str) -> dict[str, list[str]]:
    options: dict[str, list[str]] = {"include": parsed["include"], "exclude": parsed["exclude"]}
    if parsed["min_duration"] is not None:
        options["min_duration_ns"] = [str(parsed["min_duration"])]
    if parsed["max_depth"] is not None:
        options["max_depth"] = [str(parsed["max_depth"])]
    if imports := parsed["imports"] or (IMPORTS[0] if parsed["full"] or parsed["stream"] else ""):
        options["imports"] = [imports]
    if parsed["flows"]:
        options["flows"] = ["1"]
    for name in (
        "no_args",
        "no_source",
        "heap",
        "object_graph",
        "c_functions",
        "log_args",
        "log_result",
        "my_code",
        "cpu",
    ):
        if parsed[name]:
            options[name] = ["1"]
    if mode == "auto":
        options["auto_detail"] = ["1"]
    if mode == "sample":  # A slice for each short step would cost much more than the samples.
        options["long_steps"] = ["1"]
    return options
