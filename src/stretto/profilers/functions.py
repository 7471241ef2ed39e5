"""`python.functions`: every call of a Python function is a slice.

Calls are recorded in native code (`stretto._pyhooks`). Slices have the function's module and name
(`code_names`), file and line. They are on the track of the thread, even inside asyncio tasks. So a
suspended generator or coroutine ends its slice, and a resumed one begins a new slice. Calls of
functions with `@category.traced` are recorded only once, by the decorator.
"""

from __future__ import annotations

import stretto
from stretto import _pyhooks
from stretto.base.errors import ConfigError
from stretto.base.installed_code import ONLY_OWN_CODE, is_installed
from stretto.client import fork, postponed
from stretto.client.track_event import slots
from stretto.profilers.code_filter import CodeFilter
from stretto.profilers.code_names import code_name
from stretto.profilers.folded_code import FOLDED, IMPORTS, is_folded, is_starter
from stretto.profilers.on_import import stop_waiting, when_imported
from stretto.profilers.patch import Patch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import CodeType, EllipsisType
    from typing import Any

    Choice = str | tuple[str] | EllipsisType | None

category = stretto.Category("python.functions", "calls of Python functions", ["slow"])

MAX_DEPTH_LIMIT = 1 << 20


def _patterns(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not all(isinstance(pattern, str) for pattern in value):
        raise ConfigError(f"{name}: give a list of module names or paths, not {value!r}.")
    return tuple(value)


def _number(name: str, value: Any, low: int, high: int) -> int:
    if not isinstance(value, int) or not low <= value <= high:
        raise ConfigError(f"{name}: give a number from {low} to {high}, not {value!r}.")
    return value


class FunctionOptions:
    """The options of function tracing.

    Args:
        include: patterns of traced modules and paths (see `code_filter`); empty for all.
        exclude: patterns of modules and paths that are not traced.
        min_duration_ns: shorter calls are not recorded.
        max_depth: deeper calls are counted, not recorded.
        c_functions: whether functions written in C are recorded, too.
        auto_detail: whether calls shorter than a threshold are only counted, in their caller. The
            hooks of functions that have only short calls are switched off. On CPython 3.11 only
            samples of the stacks find calls.
        long_steps: whether tasks and their steps are left out that are shorter than the threshold,
            as with auto detail.
        threshold_file: for auto detail: path of a file that holds the threshold as a u64 in
            nanoseconds; the threshold may rise during the recording. "" for 50 us.
        imports: "full", "folded" or "off", see `folded_code`.
        my_code: whether only the program's own code is recorded, and the functions of installed
            code that it calls.
        log_args: whether slices have the arguments of their calls, see `call_values`.
        log_result: whether slices have the results of their calls.
        cpu: whether each slice has the CPU time of its thread.

    Raises:
        ConfigError: a value is of the wrong type or out of range.
    """

    __slots__ = (
        "auto_detail",
        "c_functions",
        "cpu",
        "exclude",
        "imports",
        "include",
        "log_args",
        "log_result",
        "long_steps",
        "max_depth",
        "min_duration_ns",
        "my_code",
        "threshold_file",
    )

    def __init__(
        self,
        *,
        include: Any = (),
        exclude: Any = (),
        min_duration_ns: Any = 0,
        max_depth: Any = _pyhooks.DEFAULT_MAX_DEPTH,
        c_functions: Any = False,
        auto_detail: Any = False,
        long_steps: Any = False,
        threshold_file: Any = "",
        imports: Any = FOLDED,
        log_args: Any = False,
        log_result: Any = False,
        cpu: Any = False,
        my_code: Any = False,
    ) -> None:
        self.include = _patterns("include", include)
        self.exclude = _patterns("exclude", exclude)
        self.min_duration_ns = _number("min_duration_ns", min_duration_ns, 0, 1 << 62)
        self.max_depth = _number("max_depth", max_depth, 1, MAX_DEPTH_LIMIT)
        self.c_functions = bool(c_functions)
        self.auto_detail = bool(auto_detail)
        self.long_steps = bool(long_steps)
        self.threshold_file = str(threshold_file)
        if imports not in IMPORTS:
            raise ConfigError(f"imports: choose from {', '.join(IMPORTS)}, not {imports!r}.")
        self.imports = imports
        self.log_args = bool(log_args)
        self.log_result = bool(log_result)
        self.cpu = bool(cpu)
        self.my_code = bool(my_code)

    @classmethod
    def parse(cls, options: Mapping[str, object]) -> FunctionOptions:
        """Create options from values by name; None selects the default.

        Raises:
            ConfigError: a name is unknown, or a value is wrong.
        """
        unknown = sorted(set(options) - set(cls.__slots__))
        if unknown:
            known = ", ".join(cls.__slots__)
            raise ConfigError(f"Unknown profiler option {unknown[0]!r}: choose from {known}.")
        given = {name: value for name, value in options.items() if value is not None}
        return cls(**given)


def _filter(options: FunctionOptions) -> CodeFilter:
    return CodeFilter(options.include, options.exclude, _tracer.on_match)


def _code_choice(
    options: FunctionOptions, accepts: CodeFilter
) -> Callable[[CodeType, str | None], Choice]:
    """Return a function that returns the name of a code object's slices; None for no slices.

    It returns `...` if only the C functions that the code calls have slices. With `my_code`, the
    name is in a tuple if the code is installed code.
    """

    def choose(code: CodeType, module: str | None) -> Choice:
        if is_folded(code, module, options.imports):
            return ... if is_starter(code, module) and accepts(code, module) else None
        if not accepts(code, module):
            return None
        name = code_name(code, module)
        return (name,) if options.my_code and is_installed(code.co_filename) else name

    return choose


def _call_values(options: FunctionOptions) -> dict[str, Any]:
    """Return the functions that describe the values of calls, by their names in `start`."""
    chosen = {"arguments_of": options.log_args, "result_of": options.log_result}
    if not any(chosen.values()):
        return {}
    from stretto.profilers import call_values

    return {name: getattr(call_values, name) for name, wanted in chosen.items() if wanted}


class _Tracer:
    """The function tracer of this process, switched by the category."""

    def __init__(self) -> None:
        self.options = FunctionOptions()
        self.failure = ""
        self.installed = False
        self.on_match: Callable[[str], object] = id

    def on_change(self, enabled: bool) -> None:
        for patch in _ends if self.options.auto_detail else ():
            patch.switch(enabled)
        if not enabled:
            stop_waiting("greenlet", _pyhooks.follow_greenlets)
            _pyhooks.stop()
        elif not _pyhooks.running():
            stop_waiting("greenlet", _pyhooks.follow_greenlets)
            when_imported("greenlet", _pyhooks.follow_greenlets)
            self._start()

    def _start(self) -> None:
        options = self.options
        try:
            _pyhooks.start(
                category,
                accepts=_code_choice(options, _filter(options)),
                min_duration_ns=options.min_duration_ns,
                max_depth=options.max_depth,
                c_functions=options.c_functions,
                auto_detail=has_auto_detail(),
                threshold_file=options.threshold_file or None,
                cpu=options.cpu,
                **_call_values(options),
            )
            self.failure = ""
        except RuntimeError as error:
            self.failure = str(error)
        if options.my_code:
            category.instant(ONLY_OWN_CODE)  # for `stretto summary`


_tracer = _Tracer()


def _before_end(*_: object, **__: object) -> bool:
    if not postponed.is_waiting():  # An unconnected child has no slices.
        finish()
    return True


def _after_failed_exec(*_: object) -> None:
    _pyhooks.resume()


_ends = [
    Patch("os", name, _before_end, _after_failed_exec) for name in ("_exit", "execv", "execve")
]
"""Functions that end the program without running exit handlers: its slices would stay open."""


def _stop_sampling_at_fork() -> None:
    """Stop the thread of auto detail before each fork, and start it again after the fork.

    In the child it starts again with the first call of a function, where calls are reported (not on
    CPython 3.11), or else when the child has connected."""
    fork.before.append(_pyhooks.pause_sampling)
    fork.after_in_parent.append(_pyhooks.resume_sampling)
    fork.when_postponed.append(_pyhooks.begin_in_child)
    fork.when_connected.append(_pyhooks.begin_sampling)


def configure(options: FunctionOptions) -> None:
    """Set the options for sessions that start later."""
    _tracer.options = options


def when_included(on_match: Callable[[str], object]) -> None:
    """Call a function once with each pattern of `include` that a called function matches."""
    _tracer.on_match = on_match


def has_auto_detail() -> bool:
    """Whether sessions that start now use auto detail: only long calls become slices."""
    return _tracer.options.auto_detail


def has_short_steps() -> bool:
    """Whether sessions that start now record all steps of tasks, also the short ones."""
    return not (_tracer.options.auto_detail or _tracer.options.long_steps)


def code_choice() -> Callable[[CodeType, str | None], Choice]:
    """Return the function that chooses and names code objects, for sessions that start now."""
    return _code_choice(_tracer.options, _filter(_tracer.options))


def imports() -> str:
    """Return the option `imports` of sessions that start now."""
    return str(_tracer.options.imports)


def install() -> None:
    """Trace calls while a session records the category."""
    if not _tracer.installed:
        _tracer.installed = True
        _stop_sampling_at_fork()
        slots.before_disable.append(_before_disable)
        slots.observe(category, _tracer.on_change)


def problems() -> list[str]:
    """Return a line for each kind of untraced calls, with their number and the reason.

    Lines about calls that an option leaves out begin with `left out: `.
    """
    lines = [_tracer.failure] if _tracer.failure else []
    stats = _pyhooks.stats()
    threads = stats["threads_replaced"] + stats["threads_occupied"]
    if threads:
        plural = "" if threads == 1 else "s"
        lines.append(f"{threads} thread{plural}: profiler replaced by the program")
    if stats["not_continued"]:
        count = f"{stats['not_continued']:,}"
        lines.append(f"left out: {count} calls of greenlets after a switch back to them: too many")
    if stats["without_record"]:
        most = f"{_pyhooks.MAX_CODE_RECORDS:,}"
        lines.append(
            f"functions after the first {most} are missing, as of a program that calls "
            "eval() or exec() with new code: --full and --sample record them"
        )
    if stats["too_deep"]:
        depth = _tracer.options.max_depth
        option = "" if _tracer.options.auto_detail else " (--max-depth)"
        lines.append(f"left out: {stats['too_deep']:,} calls deeper than {depth} frames{option}")
    if stats["too_short"] and not _tracer.options.auto_detail:
        shortest = _tracer.options.min_duration_ns / 1000
        number = f"{stats['too_short']:,}"
        lines.append(f"left out: {number} calls shorter than {shortest:g} us (--min-duration)")
    return lines


def share_totals() -> int:
    """Return the descriptor of memory with the totals of auto detail; -1 if there is none."""
    return _pyhooks.share_totals() if _tracer.options.auto_detail else -1


def finish() -> None:
    """With auto detail: end all slices, and bring the totals that the recorder reads up to date.

    Also writes an event with the period of the stack samples into the trace. Called while the
    session still runs: calls of C functions are written only when they end.
    """
    if _tracer.options.auto_detail and _pyhooks.running():
        _pyhooks.publish_totals()
        _pyhooks.suspend()


def _before_disable() -> None:
    """End the slices of a process that outlives a session, while they are still recorded."""
    if _tracer.options.auto_detail and _pyhooks.running():
        _pyhooks.suspend()
        _pyhooks.publish_totals()
        if slots.count() > 1:
            _pyhooks.resume()
