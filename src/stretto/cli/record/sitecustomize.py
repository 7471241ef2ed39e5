"""The first thing that a recorded Python runs; a copy of it lies in the recorder's folder.

It leaves no trace in `sys.path` and `sys.modules`, and then runs the sitecustomize that would
have run alone. Whatever goes wrong here is noted for the recorder: the program never hears
of it.
"""

from __future__ import annotations

import os
import sys


def _leave_path(folder: str) -> None:
    while folder in sys.path:
        sys.path.remove(folder)
    sys.path_importer_cache.pop(folder, None)


def _fail(folder: str, reason: str) -> None:
    try:
        path = os.path.join(os.path.dirname(folder), "failures", str(os.getpid()))
        with open(path, "a", encoding="utf-8", errors="replace") as file:
            file.write(reason + "\n")
    except OSError:
        pass  # the recorder has gone


def _start(folder: str) -> None:
    try:
        from stretto.cli.record import inside

        inside.start()
    except ImportError:
        _fail(folder, f"{sys.executable} has no Stretto for Python: install it there")
    except Exception as error:  # noqa: BLE001  # nothing of ours may reach the program
        _fail(folder, f"{type(error).__name__}: {error}")


_folder = os.path.dirname(__file__)
_leave_path(_folder)
_start(_folder)

# Ours was the first of its name; now the next one, if there is any. Its errors are the
# program's own, and so is the ImportError if there is none: site expects it.
sys.modules.pop("sitecustomize", None)
import sitecustomize  # type: ignore[import-not-found]  # noqa: E402, F401
