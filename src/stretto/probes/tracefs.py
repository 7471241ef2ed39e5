"""tracefs: the kernel's folder for ftrace, and instances, which have their own ring buffers.

Each session makes a private instance, and removes it at its end. So the events, buffers and clocks
of other users of ftrace don't change.

A session locks the folder of its instance. The kernel releases the lock when the process ends, even
if it is killed. The next session removes private instances that are not locked, and restores other
folders (tracefs_journal.py).
"""

from __future__ import annotations

import errno
import fcntl
import os
import re

from stretto.base.errors import StrettoError
from stretto.probes import files, tracefs_journal
from stretto.probes.tracefs_journal import Journal

FOLDERS = ("sys/kernel/tracing", "sys/kernel/debug/tracing")
PREFIX = "stretto-"
MAX_INSTANCES = 1000
_STAT = re.compile(r"^([a-z ]+): +([0-9.]+)$", re.M)


class TracefsError(StrettoError):
    """ftrace can't be used; the message says why, and what to do."""


class Folder:
    """A folder of tracefs: the top one, or an instance."""

    def __init__(self, path: str) -> None:
        self.path = path

    def read(self, name: str) -> str:
        """Return the contents of a file; empty if it can't be read."""
        return files.read(os.path.join(self.path, name)).decode(errors="replace")

    def write(self, name: str, text: str) -> bool:
        """Replace the contents of a file; return False if the kernel refuses the text."""
        return self._write(name, text, os.O_TRUNC)

    def append(self, name: str, text: str) -> bool:
        """Append text to a file; return False if the kernel refuses the text."""
        return self._write(name, text, os.O_APPEND)

    def _write(self, name: str, text: str, flag: int) -> bool:
        try:
            fd = os.open(os.path.join(self.path, name), os.O_WRONLY | flag | os.O_CLOEXEC)
        except OSError:
            return False
        data = text.encode()
        try:
            while data:  # Files of function names take one name at each call.
                data = data[os.write(fd, data) :]
        except OSError:
            return False
        finally:
            os.close(fd)
        return True

    def names(self, name: str) -> list[str]:
        """Return the sorted names of the folders in a folder."""
        try:
            with os.scandir(os.path.join(self.path, name)) as entries:
                return sorted(entry.name for entry in entries if entry.is_dir())
        except OSError:
            return []

    def has(self, name: str) -> bool:
        """Whether the kernel has a file."""
        return os.path.exists(os.path.join(self.path, name))

    def cpus(self) -> list[int]:
        """Return the numbers of the CPUs that have a ring buffer."""
        found = (name.removeprefix("cpu") for name in self.names("per_cpu"))
        return sorted(int(number) for number in found if number.isdecimal())

    def open_pipe(self, cpu: int) -> int:
        """Return a descriptor from which the pages of a CPU's ring buffer are read.

        Raises:
            OSError: The file can't be opened.
        """
        path = os.path.join(self.path, f"per_cpu/cpu{cpu}/trace_pipe_raw")
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)

    def cpu_stats(self, cpu: int) -> dict[str, float]:
        """Return the counts of a CPU's ring buffer by the kernel's names."""
        text = files.read(self.cpu_stats_path(cpu)).decode(errors="replace")
        return {name: float(value) for name, value in _STAT.findall(text)}

    def cpu_stats_path(self, cpu: int) -> str:
        """Return the path of the counts of a CPU's ring buffer."""
        return os.path.join(self.path, f"per_cpu/cpu{cpu}/stats")


def _advice(error: OSError) -> str:
    if error.errno == errno.EROFS:
        return "as root: mount -o remount,rw /sys/kernel/tracing"
    return "run as root"


class Tracefs(Folder):
    """The top folder of tracefs.

    Args:
        root: The folder with `sys`.

    Raises:
        TracefsError: tracefs isn't mounted, or this user may not use it.
    """

    def __init__(self, root: str) -> None:
        folders = [os.path.join(root, folder) for folder in FOLDERS]
        found = [path for path in folders if os.path.exists(os.path.join(path, "instances"))]
        if not found:
            refused = any(os.path.isdir(path) and not os.access(path, os.X_OK) for path in folders)
            raise TracefsError(
                "tracefs is not readable for this user: run as root"
                if refused
                else "tracefs is not mounted; as root: mount -t tracefs nodev /sys/kernel/tracing"
            )
        super().__init__(found[0])
        self.root = root

    def make_instance(self) -> Instance:
        """Make a private instance.

        Raises:
            TracefsError: The user may not make one.
        """
        reason = "all names are taken"
        for number in range(1, MAX_INSTANCES):
            path = os.path.join(self.path, "instances", f"{PREFIX}{os.getpid()}-{number}")
            try:
                self._make(path)
                return Instance(self, path, private=True)
            except (FileExistsError, FileNotFoundError, TracefsError):
                # Another session of this process has it; or another process took it for one that
                # was left, before it was locked.
                continue
            except OSError as error:
                reason = f"{error.strerror}; {_advice(error)}"
                break
        raise TracefsError(f"can't make an ftrace instance: {reason}")

    def instance(self, name: str) -> Instance:
        """Return an instance that the user has made.

        Raises:
            TracefsError: There is no such instance, or it is in use.
        """
        path = os.path.join(self.path, "instances", name)
        if "/" in name or name.startswith("..") or not os.path.isdir(path):
            raise TracefsError(f"there is no ftrace instance {name!r} in {self.path}/instances")
        return Instance(self, path, private=False)

    def top(self, *, shared: bool) -> Instance:
        """Return the top folder itself, for what instances don't have.

        Args:
            shared: Whether events may be enabled in it already.

        Raises:
            TracefsError: It is in use.
        """
        return Instance(self, self.path, private=False, shared=shared)

    def remove_left(self) -> None:
        """Remove the instances, and restore the folders, whose owners have ended."""
        for path, changed in tracefs_journal.left(self.root):
            try:
                Instance(self, path, private=False, shared=True).restore(changed)
            except (TracefsError, OSError):
                pass  # Its session still records, or the folder is gone.
        for name in self.names("instances"):
            if name.startswith(PREFIX):
                try:
                    Instance(self, os.path.join(self.path, "instances", name), private=True).close()
                except TracefsError:
                    pass  # Its session still records.

    def _make(self, path: str) -> None:
        os.mkdir(path)

    def remove(self, path: str) -> None:
        """Remove an instance, whose pipes are closed."""
        os.rmdir(path)


class Instance(Folder):
    """An instance, locked by this process.

    `close` removes a private instance. In other folders it restores what `change` has changed.

    Args:
        tracefs: The folder that contains it.
        path: Its path.
        private: Whether it was made for a session.
        shared: Whether events may be enabled in it already.

    Raises:
        TracefsError: Another session uses it, or it isn't private and events are enabled in it.
    """

    def __init__(self, tracefs: Tracefs, path: str, *, private: bool, shared: bool = False) -> None:
        super().__init__(path)
        self._tracefs = tracefs
        self.private = private
        self._changed: dict[str, str] = {}
        self._journal = Journal(tracefs.root, path)
        self._lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise TracefsError(f"{path} is in use by another session") from None
        if not private and not shared and self.read("set_event").strip():
            os.close(self._lock)
            raise TracefsError(f"{path} is in use: events are enabled in it")

    def change(self, name: str, text: str) -> bool:
        """Write a file, which `close` restores; return False if the kernel refuses the text."""
        if not self.private and name not in self._changed:
            before = _restorable(self.read(name))
            self._journal.add(name, before)
            self._changed[name] = before
        return self.write(name, text)

    def close(self) -> None:
        """Restore what was changed, or remove the private instance, and unlock it."""
        try:
            if self.private:
                self._tracefs.remove(self.path)
            else:
                for name, text in reversed(self._changed.items()):
                    self.write(name, text)
                self._journal.remove()
        except OSError:
            pass  # The next session removes it.
        finally:
            os.close(self._lock)

    def restore(self, changed: dict[str, str]) -> None:
        """Restore files as a killed process has noted it, and close the folder."""
        self._changed = changed
        self.close()


def _restorable(text: str) -> str:
    """Return the text that restores the state that a file shows: `boot` for `local [boot]`."""
    if text.startswith("####"):
        return " "  # All functions: no filter.
    if text.strip() == "none":
        return "0"  # No filter of events.
    chosen = re.search(r"\[([\w-]+)\]", text)
    return chosen[1] if chosen else text.split(" (")[0].strip() or " "
