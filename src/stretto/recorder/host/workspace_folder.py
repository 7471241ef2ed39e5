"""Creates and removes the folder of a workspace; sets its environment variables for programs.

A recorder holds a lock on its folder. If the recorder is killed, its folder is no longer locked,
and the next recorder removes the folder. A recorder that is killed before it has the lock leaves a
folder that contains at most the new lock file. Such a folder is removed when it is older than
CREATION_S.

Only folders of the same user are removed, and symbolic links are not followed. A folder that the
user has made is never removed, whatever its name, because it has other contents.
"""

from __future__ import annotations

import fcntl
import os
import stat
import sys
import time

import stretto
from stretto.base.errors import CommandError
from stretto.base.unix_socket import MAX_PATH_BYTES
from stretto.recorder import target
from stretto.recorder.workspace import VARIABLE, Options, Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.recorder.host.options import RecordingOptions

PREFIX = "stretto-record-"
LOCK = "recorder.lock"
NEW_LOCK = f"{LOCK}.new"
"""The name of the lock file before it is locked."""
MALLOC_LIBRARY = os.path.join(os.path.dirname(stretto.__file__), "libstretto_malloc.so")
MALLOC_VARIABLE = "STRETTO_NATIVE_HEAP"
"""Starts the library in a program (native/preload/sampler.h)."""
CREATION_S = 60
"""More than the time from the creation of a folder to its lock."""


def _candidates() -> list[str]:
    """Return the folders that may contain workspaces. The first folder is removed at logout."""
    places = [*map(os.environ.get, ("XDG_RUNTIME_DIR", "TMPDIR")), "/tmp", "/var/tmp"]
    room = len("/" + PREFIX + "12345678/producer.sock")
    return [place for place in places if place and len(os.fsencode(place)) + room <= MAX_PATH_BYTES]


def _make() -> str:
    """Create a folder that only this user can enter.

    Raises:
        CommandError: no folder that may contain workspaces is writable.
    """
    reasons = []
    for place in _candidates():
        try:
            folder = os.path.join(os.path.abspath(place), PREFIX + os.urandom(4).hex())
            os.mkdir(folder, 0o700)
            return folder
        except OSError as error:
            reasons.append(f"{place}: {error.strerror}")
    raise CommandError(
        f"record: no temporary folder ({'; '.join(reasons)}): set TMPDIR to one that is writable."
    )


def _is_left_behind(folder: str) -> bool:
    """Return whether the folder is owned by this user, and its recorder has ended."""
    try:
        status = os.lstat(folder)
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
            return False
        fd = os.open(os.path.join(folder, LOCK), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return _is_unfinished(folder)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.fstat(fd).st_uid == os.geteuid()
    except BlockingIOError:
        return False
    finally:
        os.close(fd)


def _is_unfinished(folder: str) -> bool:
    """Return whether the folder contains no more than a new lock, and is older than CREATION_S."""
    try:
        old = time.time() - os.lstat(folder).st_mtime > CREATION_S
        return old and set(os.listdir(folder)) <= {NEW_LOCK}
    except OSError:
        return False  # Another recorder has removed the folder.


def sweep() -> None:
    """Remove the folders of recorders that were killed."""
    for place in _candidates():
        try:
            names = [name for name in os.listdir(place) if name.startswith(PREFIX)]
        except OSError:
            continue
        for name in names:
            if _is_left_behind(path := os.path.join(place, name)):
                _remove_tree(path)


def _remove_tree(folder: str) -> None:
    """Remove a folder. Symbolic links are not followed, and errors are ignored."""
    for path, folders, files in os.walk(folder, topdown=False):
        for name in (*files, *folders):
            _remove_entry(os.path.join(path, name))
    _remove_entry(folder)


def _remove_entry(path: str) -> None:
    try:
        os.unlink(path)
    except IsADirectoryError:
        try:
            os.rmdir(path)
        except OSError:
            pass
    except OSError:
        pass


def _lock(folder: str) -> int:
    """Create the lock file, and return its descriptor.

    The file is locked before it is renamed: otherwise another recorder could remove the folder.
    """
    path = os.path.join(folder, NEW_LOCK)
    fd = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX)
    os.rename(path, os.path.join(folder, LOCK))
    return fd


_locks: dict[str, int] = {}


def create(options: Options) -> Workspace:
    """Create a workspace, after removing the workspaces of killed recorders.

    Args:
        options: the options of the recorded processes.

    Raises:
        CommandError: the folder can't be created.
    """
    sweep()
    workspace = Workspace(_make())
    try:
        _locks[workspace.folder] = _lock(workspace.folder)
        os.mkdir(workspace.site)
        os.mkdir(workspace.notes)
        os.mkdir(workspace.failures)
        os.mkdir(workspace.native_heap)
        _copy_first_code(workspace.site)
        workspace.write_options(options)
    except OSError as error:
        remove(workspace)
        raise CommandError(f"record: {error}: set TMPDIR to another folder.") from error
    return workspace


def _copy_first_code(folder: str) -> None:
    """Copy the module `sitecustomize`, and its compiled file for Pythons of this version."""
    package = os.path.dirname(target.__file__)
    path = _copy(package, folder, "sitecustomize.py")
    # The compiled file counts as current if the source has the time that is noted in it.
    os.utime(path, ns=(0, os.stat(os.path.join(package, "sitecustomize.py")).st_mtime_ns))
    compiled = f"__pycache__/sitecustomize.{sys.implementation.cache_tag}.pyc"
    try:
        os.mkdir(os.path.join(folder, "__pycache__"))
        _copy(package, folder, compiled)
    except OSError:  # The package isn't compiled, or a limit cuts the file.
        _remove_file(os.path.join(folder, compiled))  # Now each Python compiles the module.


def _remove_file(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass  # There is none.


def _copy(source: str, folder: str, name: str) -> str:
    """Copy a file from one folder to another, and return the path of the copy."""
    with open(os.path.join(source, name), "rb") as file:
        contents = file.read()
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(contents)
    return path


def remove(workspace: Workspace) -> None:
    """Remove the folder with its files; processes that are still running can't connect any more."""
    _remove_tree(workspace.folder)
    lock = _locks.pop(workspace.folder, -1)
    if lock >= 0:
        os.close(lock)


def environment(workspace: Workspace, options: RecordingOptions) -> dict[str, str]:
    """Return the environment of recorded programs: that of this process, with more variables."""
    variables = dict(os.environ)
    if options.native_heap is not None:
        before = variables.get("LD_PRELOAD")
        variables["LD_PRELOAD"] = f"{MALLOC_LIBRARY}:{before}" if before else MALLOC_LIBRARY
        interval = options.native_heap.interval
        variables[MALLOC_VARIABLE] = f"{interval}:{workspace.native_heap}"
    path = variables.get("PYTHONPATH")
    variables["PYTHONPATH"] = f"{workspace.site}{os.pathsep}{path}" if path else workspace.site
    variables[VARIABLE] = workspace.folder
    return variables
