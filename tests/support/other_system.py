"""Makes this process look like macOS or Windows, then runs a script or the command `stretto`.

    python tests/support/other_system.py SCRIPT      a Python file
    python tests/support/other_system.py -- VERB …   stretto VERB …

What only Linux has is gone, and what macOS or Windows lacks: modules can't be imported, names of
`os`, `select`, `signal` and others don't exist. The standard library has imported its own before.
The native part is missing, but for the importer of traces.
"""

from __future__ import annotations

import http.server  # noqa: F401
import mmap
import multiprocessing.popen_spawn_posix  # noqa: F401
import os
import re
import runpy
import select
import shutil  # noqa: F401
import signal
import socket
import subprocess
import sys
import tempfile  # noqa: F401
import time
import webbrowser  # noqa: F401
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

MODULES = {"fcntl", "grp", "posix", "pwd", "resource", "syslog", "termios", "tty"}
NATIVE = {"stretto._native", "stretto._pyhooks"}
IMPORTER = ("ArrowTable", "TraceImporter", "scan_trace", "source_locations", "tokenize")
"""What the extension `_importer` has."""

MISSING = {
    os: r"p(read|write)v?$|O_(CLOEXEC|NOFOLLOW|NONBLOCK|DIRECTORY|TMPFILE|PATH)$|gete?[ug]id$|fork$"
    r"|register_at_fork|memfd_|MFD_|eventfd|EFD_|pidfd|sched_|sendfile|killpg|setsid|uname$",
    select: r"e?poll$|EPOLL|POLL",
    signal: r"SIG(HUP|USR\d|WINCH|PIPE|CHLD|ALRM|KILL|STOP)$|pthread_|setitimer|sigwait",
    socket: r"AF_(UNIX|VSOCK|NETLINK)|SO_PEERCRED|SOCK_CLOEXEC|MSG_(NOSIGNAL|DONTWAIT|CMSG_)",
    mmap: r"(MAP|PROT|MADV)_",
    time: r"CLOCK_BOOTTIME|clock_gettime",
}  # fmt: skip
"""Patterns of names that another system lacks, by module."""


class _Blocked:
    """Finds no module that another system lacks."""

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> None:
        if name in MODULES | NATIVE:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def importer() -> ModuleType:
    """Return the extension `_importer`, made of the extension `_native`."""
    package = find_spec("stretto")
    assert package is not None
    assert package.submodule_search_locations
    (file,) = Path(package.submodule_search_locations[0]).glob("_native.*.so")
    spec = spec_from_file_location("stretto._native", file)
    assert spec is not None
    assert spec.loader is not None
    native = module_from_spec(spec)
    spec.loader.exec_module(native)
    made = ModuleType("stretto._importer")
    made.__dict__.update((name, getattr(native, name)) for name in IMPORTER)
    return made


def imitate() -> None:
    """Make this process look like another system."""
    made = importer()
    for name in [*sys.modules]:
        if name in MODULES or name.partition(".")[0] == "stretto":
            del sys.modules[name]
    sys.modules["stretto._importer"] = made
    sys.meta_path.insert(0, _Blocked())  # type: ignore[arg-type]
    for module, pattern in MISSING.items():
        for name in dir(module):
            if re.match(pattern, name):
                delattr(module, name)
    sys.platform = "darwin"


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run this module in a process of its own."""
    return subprocess.run(
        [sys.executable, "-P", "-W", "error", __file__, *arguments],
        cwd=cwd, check=False, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def main() -> int:
    """Run what the command line names."""
    imitate()
    first, *rest = sys.argv[1:]
    if first != "--":
        runpy.run_path(first, run_name="__main__")
        return 0
    from stretto.cli.main import main as stretto

    return stretto(rest)


if __name__ == "__main__":
    sys.exit(main())
