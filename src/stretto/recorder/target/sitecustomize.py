"""The first thing that a recorded Python runs; a copy of it lies in the recorder's folder.

It leaves no trace in `sys.path` and `sys.modules`, and then runs the sitecustomize that would
have run alone. Whatever goes wrong here is noted for the recorder: the program never hears
of it. Every Python that a program starts reads this, so it is written in what all of them
understand, back to Python 2.
"""
# ruff: noqa: I002  # an import of the future that Python 2 has no idea of

import os
import sys

OLDEST = (3, 11)


def _leave_path(folder):  # type: (str) -> None
    while folder in sys.path:
        sys.path.remove(folder)
    sys.path_importer_cache.pop(folder, None)


def _fail(folder, reason):  # type: (str, str) -> None
    try:
        path = os.path.join(os.path.dirname(folder), "failures", str(os.getpid()))
        with open(path, "ab") as file:
            file.write((reason + "\n").encode("utf-8", "replace"))
    except (OSError, ValueError):
        pass  # the recorder has gone


def _start(folder):  # type: (str) -> None
    if sys.version_info < OLDEST:
        version = ".".join(str(part) for part in sys.version_info[:2])
        _fail(folder, sys.executable + " is Python " + version + ": Stretto needs 3.11 or newer")
        return
    try:
        from stretto.recorder.target import bootstrap

        bootstrap.start()
    except ImportError:
        _fail(folder, sys.executable + " has no Stretto for Python: install it there")
    except Exception as error:  # noqa: BLE001  # nothing of ours may reach the program
        _fail(folder, type(error).__name__ + ": " + str(error))


_folder = os.path.dirname(__file__)
_leave_path(_folder)
_start(_folder)

# Ours was the first of its name; now the next one, if there is any. Its errors are the
# program's own, and so is the ImportError if there is none: site expects it.
sys.modules.pop("sitecustomize", None)
import sitecustomize  # type: ignore[import-not-found]  # noqa: E402, F401
