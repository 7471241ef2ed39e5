"""Checks whether the recorder can attach to a process."""

from __future__ import annotations

import os
import re
import resource
import sys
from contextlib import suppress

from stretto.base import proc_files
from stretto.base.errors import CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

OLDEST = (3, 14)
_VERSION = re.compile(r"(?:lib)?python(3)\.(\d+)")
DESCRIPTORS = 16
"""How many more descriptors the program must be able to open."""
_YAMA = "/proc/sys/kernel/yama/ptrace_scope"


def check(pid: int) -> None:
    """Check that the process is a Python interpreter to which this interpreter can attach.

    Raises:
        CommandError: attaching isn't possible; the message contains the reason.
    """
    if not os.path.exists(f"/proc/{pid}"):
        raise refusal(pid, "there is no such process")
    _check_user(pid)
    _check_file_system(pid)
    version = python_version(pid)
    if version is not None and version < OLDEST:
        raise refusal(
            pid,
            f"it is CPython {_text(version)}, and attaching needs 3.14 or newer: start the program "
            "with `stretto record` instead",
        )
    _check_own_version(pid, version)
    _check_settings(pid)
    _check_descriptors(pid)
    if _state(pid) in (b"T", b"t"):
        raise refusal(pid, f"it is stopped: continue it by `kill -CONT {pid}`, or in its debugger")


def refusal(pid: int, reason: str) -> CommandError:
    """Return an error with the reason why a recorder can't attach."""
    return CommandError(f"record: can't attach to process {pid}: {reason}.")


def explain(pid: int, error: Exception) -> CommandError:
    """Return the error for a failure of `sys.remote_exec`."""
    text = str(error)
    if isinstance(error, PermissionError) or "ermission" in text or "not permitted" in text:
        return refusal(pid, f"the kernel doesn't allow it{_ptrace_scope()}")
    if "not enabled" in text and os.environ.get("PYTHON_DISABLE_REMOTE_DEBUG"):
        return refusal(pid, "PYTHON_DISABLE_REMOTE_DEBUG is set for the recorder: unset it")
    if "not enabled" in text:
        return refusal(pid, "its Python was built without remote debugging, or has it switched off")
    if _state(pid) in (b"", b"Z"):
        return refusal(pid, "it has ended")
    if "main thread" in text:
        return refusal(
            pid,
            "its main thread has ended, or it has sub-interpreters: CPython finds no main thread",
        )
    if "PyRuntime" in text:
        return refusal(pid, "it is no CPython 3.14 or newer")
    return refusal(pid, text.rstrip(".") or type(error).__name__)


def _state(pid: int) -> bytes:
    return b"".join(proc_files.stat(pid)[:1])


def _ptrace_scope() -> str:
    with suppress(OSError), open(_YAMA, encoding="ascii") as file:
        if (scope := file.read().strip()) != "0":
            return (
                f": kernel.yama.ptrace_scope is {scope}. Root sets it to 0 by "
                "`sysctl kernel.yama.ptrace_scope=0`"
            )
    return ": a container or a security module may forbid ptrace"


def _check_user(pid: int) -> None:
    if (user := proc_files.effective_user(pid)) not in (-1, os.geteuid()):
        raise refusal(pid, f"it runs as user {user}: run `stretto record` as that user")


def _check_file_system(pid: int) -> None:
    try:
        same = os.path.samefile(f"/proc/{pid}/root/", "/") and _same_namespace(pid)
    except PermissionError as error:
        raise explain(pid, error) from error
    except OSError:
        return  # The process has ended meanwhile.
    if not same:
        raise refusal(
            pid, "it runs in another file system, such as a container's: run `stretto record` there"
        )


def _same_namespace(pid: int) -> bool:
    return os.readlink(f"/proc/{pid}/ns/mnt") == os.readlink("/proc/self/ns/mnt")


def _loaded_files(pid: int) -> Iterable[str]:
    """Yield the paths of the executable and the libraries of a process."""
    with suppress(OSError):
        yield os.readlink(f"/proc/{pid}/exe")
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as file:
            yield from (line.split(maxsplit=5)[-1] for line in file if "/" in line)


def python_version(pid: int) -> tuple[int, int] | None:
    """Return the version of a process's Python, known from file names; None if unknown."""
    for path in _loaded_files(pid):
        if found := _VERSION.match(os.path.basename(path)):
            return int(found[1]), int(found[2])
    return None


def _check_own_version(pid: int, version: tuple[int, int] | None) -> None:
    own = sys.version_info[:2]
    if own >= OLDEST and version in (None, own):
        return
    if version is None:
        raise refusal(
            pid, f"this Stretto runs on CPython {_text(own)}: install it on the program's"
        )
    raise refusal(
        pid,
        f"this Stretto runs on CPython {_text(own)}, and the process on {_text(version)}. Install "
        f"Stretto there, and run `python{_text(version)} -m stretto record --attach {pid}`",
    )


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _check_settings(pid: int) -> None:
    """Check whether the environment or an option of the process disables remote debugging."""
    for word in proc_files.words(pid, "environ"):
        if word.startswith("PYTHON_DISABLE_REMOTE_DEBUG=") and not word.endswith("="):
            raise refusal(pid, "its environment has PYTHON_DISABLE_REMOTE_DEBUG")
    arguments = proc_files.words(pid, "cmdline")
    if any(word.removeprefix("-X") == "disable-remote-debug" for word in arguments):
        raise refusal(pid, "it was started with -X disable-remote-debug")


def _check_descriptors(pid: int) -> None:
    """Check that the process can open files: otherwise CPython prints an error in the process."""
    with suppress(OSError):
        used = len(os.listdir(f"/proc/{pid}/fd"))
        limit = resource.prlimit(pid, resource.RLIMIT_NOFILE)[0]
        if limit - used < DESCRIPTORS:
            raise refusal(pid, f"it has {used} open files, and may have {limit}")
