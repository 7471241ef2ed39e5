"""The first code that a recorded Python runs; the recorder copies it into its workspace.

It removes itself from `sys.path` and `sys.modules`, and then imports the sitecustomize that would
have been imported without a recorder. Errors are written into the workspace, and never reach the
program. Every Python that a program starts runs this file, so its syntax is valid from Python 2 on.
"""
# ruff: noqa: I002  # Python 2 doesn't support this future import

import gc
import os
import sys

OLDEST = (3, 11)
IMPORT_SYSTEM = ("_frozen_importlib", "importlib._bootstrap")


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
        pass  # The recorder has removed its workspace.


def _interrupt_later(signals, main):  # type: (object, int) -> None
    """Send SIGINT to this process when its main thread runs the program.

    Before that, C code imports `site`. There an interrupt could be lost in a callback of the import
    system, which ignores exceptions.
    """
    import time

    caller = None
    while caller is None or caller in IMPORT_SYSTEM:
        time.sleep(0.001)
        frame = sys._current_frames().get(main)  # noqa: SLF001
        while frame is not None and frame.f_back is not None:
            frame = frame.f_back
        caller = frame and frame.f_globals.get("__name__", "")
    os.kill(os.getpid(), signals.SIGINT)  # type: ignore[attr-defined]


def _start(folder):  # type: (str) -> None
    if sys.version_info < OLDEST:
        version = ".".join(str(part) for part in sys.version_info[:2])
        _fail(folder, sys.executable + " is Python " + version + ": Stretto needs 3.11 or newer")
        return
    import _signal  # type: ignore[import-not-found]
    import _thread

    enabled = gc.isenabled()
    gc.disable()
    first = gc.get_stats()
    mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, [_signal.SIGINT])
    try:
        from stretto.recorder.target import bootstrap

        bootstrap.start(first)
    except ImportError:
        _fail(folder, sys.executable + " has no Stretto for Python: install it there")
    except Exception as error:  # noqa: BLE001  # no error may reach the program
        _fail(folder, type(error).__name__ + ": " + str(error))
    finally:
        if enabled:
            gc.enable()
        # No function of Python is called: it would be recorded.
        if _signal.sigtimedwait([_signal.SIGINT], 0):
            _thread.start_new_thread(_interrupt_later, (_signal, _thread.get_ident()))
        _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)


_folder = os.path.dirname(__file__)
_leave_path(_folder)
_start(_folder)
# A function refers to these globals, and they to it: a cycle, which the program's first collection
# would find.
for _name in ("_leave_path", "_fail", "_interrupt_later", "_start"):
    del globals()[_name]

# Import the next sitecustomize on the path. `site` handles its errors, and the ImportError
# if there is no other sitecustomize.
sys.modules.pop("sitecustomize", None)
import sitecustomize  # type: ignore[import-not-found]  # noqa: E402, F401
