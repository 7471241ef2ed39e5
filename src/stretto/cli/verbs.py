"""The verbs of the command `stretto`: its own, and those of other distributions.

A distribution adds a verb by an entry point of the group `stretto.verbs`, as stretto-fidl does:

    [project.entry-points."stretto.verbs"]
    fidl = "stretto_fidl.cli.command:run"

The entry point names a function `run(arguments) -> exit code`; docs/verbs.md describes it. The
function is imported when its verb runs, and for `stretto --help`, which shows the first line of the
function's docstring.
"""

from __future__ import annotations

import sys
from importlib import import_module

from stretto.base.errors import CommandError
from stretto.base.nearest_name import MISTYPED, nearest
from stretto.base.portable import RECORDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.metadata import EntryPoint

    Verb = Callable[[Sequence[str]], int]

GROUP = "stretto.verbs"

VERBS = {
    "record": ("stretto.cli.record.command", "record a program and its child processes"),
    "attach": ("stretto.cli.attach", "sample the Python stacks of a running process"),
    "top": ("stretto.cli.top", "show live where a running Python process spends its time"),
    "dump": ("stretto.cli.dump", "print the Python stacks of a running process"),
    "recover": ("stretto.cli.recover", "make a trace of a killed recorder's ring"),
    "trace": ("stretto.cli.trace.command", "record all producers of this machine"),
    "trigger": ("stretto.cli.trigger", "activate triggers of running sessions"),
    "traced": ("stretto.cli.traced.command", "run the tracing service of this machine"),
    "probes": ("stretto.cli.probes", "record the machine: memory, CPUs, disks, processes"),
    "autostart": ("stretto.cli.autostart", "connect Python programs when they start"),
    "bridge": ("stretto.cli.bridge", "let the Perfetto UI record on this machine"),
    "flows": ("stretto.cli.flows.command", "show the RPC calls of a trace"),
    "summary": ("stretto.cli.summary", "show what was slow in a trace, and what was lost"),
    "diff": ("stretto.cli.diff", "compare two traces, or groups of traces, by function"),
    "plot": ("stretto.cli.plot", "draw a trace: slices, counters, flame graph, latencies"),
    "query": ("stretto.cli.query", "run SQL on a trace"),
    "convert": (
        "stretto.cli.convert.command",
        "convert a trace, also for other viewers",
    ),
    "view": ("stretto.cli.view", "show a trace in the Perfetto UI"),
    "doctor": ("stretto.cli.doctor.command", "show what this machine allows"),
    "completion": ("stretto.cli.completion", "print a script for completion in bash or zsh"),
}
"""Stretto's own verbs: (module, description) by name."""

ANYWHERE = {
    "flows", "summary", "diff", "plot", "query", "convert", "view", "doctor", "completion",
}  # fmt: skip
"""The verbs that need no Linux: those that read traces, and `doctor`, which says why there are no
others."""

SEPARATE = {"fidl": ("stretto-fidl", "compile FIDL definitions, generate bindings")}
"""Verbs of this project's other distributions: (distribution, description) by name."""


def own_verbs() -> list[str]:
    """Return those of Stretto's own verbs that this system has."""
    return [name for name in VERBS if RECORDS or name in ANYWHERE]


def elsewhere() -> list[str]:
    """Return those of Stretto's own verbs that need another system."""
    return [name for name in VERBS if not RECORDS and name not in ANYWHERE]


def added_verbs() -> dict[str, EntryPoint]:
    """Return the verbs of installed distributions by name; the first if a name occurs twice."""
    # Importing `importlib.metadata` takes 20 ms, so it is imported only if needed.
    from importlib.metadata import entry_points

    found: dict[str, EntryPoint] = {}
    for entry in sorted(entry_points(group=GROUP)):
        if entry.name not in VERBS:
            found.setdefault(entry.name, entry)
    return found


def load_verb(name: str) -> Verb:
    """Return the function that runs a verb.

    Raises:
        CommandError: There is no such verb, it needs another system, or its distribution isn't
            installed or is broken.
    """
    if name in elsewhere():
        raise CommandError(f"{name} needs Linux; on this system: {', '.join(own_verbs())}.", 2)
    if name in VERBS:
        _load_bundle(name)
        module, _ = VERBS[name]
        verb: Verb = import_module(module).run
        return verb
    added = added_verbs()
    if name in added:
        return _load(added[name])
    if name in SEPARATE:
        distribution, _ = SEPARATE[name]
        raise CommandError(
            f"{name}: this verb comes with the distribution {distribution}, which is not "
            f"installed: run `pip install {distribution}`."
        )
    known = [*own_verbs(), *sorted(added.keys() | SEPARATE)]
    hint = nearest(name, known, MISTYPED)
    raise CommandError(f"There is no verb {name!r}: choose from {', '.join(known)}.{hint}", 2)


def _load_bundle(name: str) -> None:
    """Import the modules of a verb from its bundle, if it has one and this is CPython on Linux."""
    bundle = sys.modules.get("stretto._bundle")
    if bundle is not None:
        bundle.load(name)


def _load(entry: EntryPoint) -> Verb:
    try:
        verb: Verb = entry.load()
    except Exception as error:  # Importing the module may raise any exception.
        where = entry.dist.name if entry.dist is not None else entry.value
        raise CommandError(
            f"{entry.name}: the verb can't be loaded: {error}. Install {where} again."
        ) from error
    return verb


def described_verbs() -> dict[str, str]:
    """Return the description of each verb, in the order of `stretto --help`."""
    texts = {name: VERBS[name][1] for name in own_verbs()}
    for name, (distribution, text) in SEPARATE.items():
        texts[name] = f"{text} (needs `pip install {distribution}`)"
    for name, entry in added_verbs().items():
        texts[name] = SEPARATE[name][1] if name in SEPARATE else _described(entry)
    return texts


def _described(entry: EntryPoint) -> str:
    try:
        text = _load(entry).__doc__ or ""
    except CommandError as error:
        return str(error)
    return text.strip().partition("\n")[0]
