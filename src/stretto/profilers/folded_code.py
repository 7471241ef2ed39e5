"""The interpreter's own machinery, whose frames only hide those of the program.

Folded are the import system, the frames through which the standard library starts scripts,
threads, processes and coroutines, and the coroutines that record the requests of a program. Whether
code is folded is decided once for each code object.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType

FULL, FOLDED, OFF = IMPORTS = ("full", "folded", "off")
"""Import machinery and bodies of modules are recorded; only bodies of modules are; neither."""

MAIN_MODULES = ("__main__", "__mp_main__")
_CO_OPTIMIZED = 1
"""The flag of code of functions, which bodies of modules and classes lack."""

_ALL = ("",)
_FOLDED: dict[str | None, tuple[str, ...]] = {
    "_frozen_importlib": _ALL,  # its name until the program imports importlib
    "_frozen_importlib_external": _ALL,
    "anyio._backends._asyncio": _ALL,
    "anyio._backends._trio": _ALL,
    "anyio._core._tasks": ("TaskHandle._",),
    "asyncio.base_events": _ALL,
    "asyncio.base_futures": _ALL,
    "asyncio.base_subprocess": _ALL,
    "asyncio.base_tasks": _ALL,
    "asyncio.coroutines": _ALL,
    "asyncio.events": _ALL,
    "asyncio.futures": _ALL,
    "asyncio.protocols": _ALL,
    "asyncio.runners": ("Runner.", "_"),
    "asyncio.selector_events": _ALL,
    "asyncio.sslproto": _ALL,
    "asyncio.tasks": ("_",),
    "asyncio.transports": _ALL,
    "asyncio.unix_events": _ALL,
    "concurrent.futures.thread": ("_",),
    "importlib": _ALL,
    "importlib._abc": _ALL,
    "importlib._bootstrap": _ALL,
    "importlib._bootstrap_external": _ALL,
    "importlib.abc": _ALL,
    "importlib.machinery": _ALL,
    "importlib.util": _ALL,
    "multiprocessing.context": ("ForkProcess._", "SpawnProcess._", "ForkServerProcess._"),
    "multiprocessing.forkserver": _ALL,
    "multiprocessing.popen_fork": ("Popen.__init__", "Popen._launch"),
    "multiprocessing.process": ("BaseProcess._bootstrap", "BaseProcess.run"),
    "multiprocessing.spawn": _ALL,
    "runpy": _ALL,
    "stretto.flows.asgi": _ALL,
    "stretto.flows.automatic": _ALL,
    "stretto.flows.grpcio_aio": _ALL,
    "stretto.flows.own_frames": _ALL,
    "threading": ("Thread._bootstrap", "Thread.run"),
    "trio._core._run": (
        "CancelScope._",
        "GuestState.",
        "Nursery.",
        "Runner.",
        "_",
        "setup_runner",
        "unrolled_run",
    ),
    "trio._core._traps": _ALL,
    "uvloop": ("run.",),
    "zipimport": _ALL,
}
"""Beginnings of the qualified names of folded functions, by module."""

SPAWNERS = (
    "multiprocessing.spawn", "multiprocessing.forkserver", "multiprocessing.resource_tracker",
)  # fmt: skip
"""The modules that the command of a child imports first."""

_STARTERS = {
    ("threading", "Thread.run"),
    ("concurrent.futures.thread", "_WorkItem.run"),
    ("multiprocessing.process", "BaseProcess.run"),
}


def is_starter(code: CodeType, module: str | None) -> bool:
    """Whether the code is folded, and calls a function of the program that may be written in C."""
    return (module, code.co_qualname) in _STARTERS


def is_body(code: CodeType) -> bool:
    """Whether the code is the body of a module that was loaded from a file."""
    return code.co_name == "<module>" and not code.co_filename.startswith("<string>")


def is_spawn(code: CodeType) -> bool:
    """Whether the code is the command of a child that `multiprocessing` starts by `python -c`."""
    names = code.co_names
    return code.co_filename == "<string>" and bool(names) and names[0] in SPAWNERS


def is_machinery(qualified_name: str, module: str | None) -> bool:
    """Whether a function of this module is the interpreter's own machinery."""
    return qualified_name.startswith(_FOLDED.get(module, ()))


def is_folded(code: CodeType, module: str | None, imports: str) -> bool:
    """Whether slices of the code are left out.

    Args:
        code: the code of a function, a class or a module.
        module: the name of the module that the code runs in.
        imports: one of `IMPORTS`.
    """
    if imports == FULL:
        return False
    if code.co_name == "<module>":
        return is_spawn(code) or (imports == OFF and is_body(code) and module not in MAIN_MODULES)
    if not code.co_flags & _CO_OPTIMIZED:
        return True
    return is_machinery(code.co_qualname, module)
