"""The name of this process in a trace: its program, and its role in the program.

shop.py                        a script
-m pytest                      a module
python -c import shop          code on the command line
job.py ForkPoolWorker-1        a worker of multiprocessing
gunicorn worker 2              the second process that gunicorn has forked
celery worker ForkPoolWorker-1 a process of celery's pool
pytest gw0                     a worker of pytest-xdist
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MAX_CODE = 40
"""Characters of code on the command line that are part of the name."""

_SPAWNED = "--multiprocessing-fork"
_HELPER = "from multiprocessing."
_CELERY_ROLES = ("worker", "beat", "events")
_POOLS = ("multiprocessing", "billiard")
"""Packages that start worker processes; billiard is celery's."""

_first_pid = 0 if "gunicorn.arbiter" in sys.modules else os.getpid()
"""The process that has imported this module; 0 if it may be a worker of gunicorn."""

_forks = 0
"""How often the first process has forked, up to the fork of this process."""


class _Hidden:
    """Which data of this process is left out of traces."""

    arguments = False
    """Whether arguments on command lines, which may be secret, are left out."""


hidden = _Hidden()

given: list[str] = []
"""The name that a plugin has given to this process, if any, instead of its program's."""

_followed: set[str] = set()
"""Packages that call a function of ours in new processes."""


def process_name() -> str:
    """Return the name of this process in a trace."""
    name = producer_name()
    if given:
        name = given[0]
    elif _module():
        name = f"-m {name}"
    elif _script() == "-c" and _SPAWNED not in words():
        name = name_of_code(_option("c"), is_hidden=hidden.arguments)
    return " ".join(word for word in (name, _server_role(name), _worker_name()) if word)


def producer_name() -> str:
    """Return the name of this process for services: its module, script or interpreter."""
    script = _script()
    if module := _module():
        return module
    if script == "-c" and _SPAWNED in words():
        return "multiprocessing"  # The script of a spawned process isn't loaded yet.
    if script not in ("", "-", "-c", "-m"):
        return os.path.basename(script)
    return os.path.basename(next(iter(words("orig_argv")), "python"))


def words(name: str = "argv") -> list[str]:
    """Return the command line in `sys`, which a program may delete or set to anything."""
    found = getattr(sys, name, None)
    if not isinstance(found, (list, tuple)):
        return []
    return [_text(each) for each in found]


def _text(word: object) -> str:
    try:
        return str(word)
    except Exception:  # noqa: BLE001  # the program's code may raise anything
        return "?"


def _script() -> str:
    return next(iter(words()), "")


def _module() -> str:
    """Return the module that `-m` runs, or ""."""
    main = getattr(getattr(sys.modules.get("__main__"), "__spec__", None), "name", "")
    if main and main != "__main__":
        return str(main).removesuffix(".__main__")
    script = _script()
    if script == "-m":  # The interpreter hasn't found the module yet.
        return _option("m")
    folder, name = os.path.split(script)
    # `python -m PACKAGE` runs the script PACKAGE/__main__.py. A spawned worker knows only the
    # path of this script.
    return os.path.basename(folder) if name == "__main__.py" else ""


def _option(letter: str) -> str:
    """Return the argument of an option of the interpreter."""
    given_words = words("orig_argv")
    for position, word in enumerate(given_words):
        flags, found, value = word.partition(letter)
        if found and flags.startswith("-") and not {"X", "W", "-"} & set(flags[1:]):
            return value or "".join(given_words[position + 1 : position + 2])
    return ""


def name_of_code(text: str, *, is_hidden: bool = False) -> str:
    """Return the name of a program that is code on the command line.

    Args:
        text: The code.
        is_hidden: Whether the code may be secret.
    """
    code = " ".join(text.split())
    if code.startswith(_HELPER):  # a helper process, such as the resource tracker
        return "multiprocessing " + code.removeprefix(_HELPER).partition(" ")[0]
    if is_hidden:
        return "python -c"
    return f"python -c {code[:MAX_CODE]}{'…' * (len(code) > MAX_CODE)}"


def _server_role(program: str) -> str:
    if program.endswith("gunicorn") and _first_pid:
        return "master" if os.getpid() == _first_pid else f"worker {_forks or ''}".rstrip()
    if program.endswith("celery"):
        return next((word for word in words()[1:] if word in _CELERY_ROLES), "")
    return ""


def count_fork() -> None:
    """Count a fork that this process begins: the workers of gunicorn are numbered."""
    global _forks
    if os.getpid() == _first_pid:
        _forks += 1


def _worker_name() -> str:
    """Return the name that multiprocessing gives to this process; "" for a main process."""
    for package in _POOLS:
        module = sys.modules.get(f"{package}.process")
        process = getattr(module, "_current_process", None)
        if process is not None and process.name != "MainProcess":
            return str(process.name)
    return ""


def call_when_named(announce: Callable[[object], object]) -> None:
    """Call a function with an object as soon as multiprocessing has named this new process."""
    for package in _POOLS:
        # Another thread may be importing the module, which then has no function yet.
        util = sys.modules.get(f"{package}.util")
        register = getattr(util, "register_after_fork", None)
        if register is not None and package not in _followed:
            _followed.add(package)
            register(announce, announce)
