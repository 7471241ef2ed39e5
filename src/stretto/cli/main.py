"""The command `stretto`: runs a verb, and converts errors to messages and exit codes."""

from __future__ import annotations

import errno
import gc
import io
import os
import sys

from stretto.base.errors import CommandError, StrettoError
from stretto.base.portable import RECORDS, is_broken_pipe
from stretto.cli.verbs import described_verbs, elsewhere, load_verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

USAGE_EXIT_CODE = 2
BROKEN_PIPE_EXIT_CODE = 128 + 13
"""The shell's exit code for death by SIGPIPE: `stretto flows trace.pftrace | head`."""
_OUTPUT_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

_WHEEL = (
    "Install a wheel for Linux (x86-64, aarch64) and CPython 3.11 to 3.15, or build from the "
    "source (pip needs a C compiler)."
    if RECORDS
    else "Install a wheel for macOS (x86-64, arm64) or Windows (x86-64), and CPython 3.11 or later."
)
_START = """\
Start with

  stretto record app.py
  stretto view trace.pftrace
"""
_START_ELSEWHERE = """\
Recording needs Linux, as do the other verbs: {verbs}.

Start with a trace that was recorded there:

  stretto summary trace.pftrace
  stretto view trace.pftrace
"""


def _help() -> str:
    verbs = "\n".join(f"  stretto {name:<10} {text}" for name, text in described_verbs().items())
    start = _START if RECORDS else _START_ELSEWHERE.format(verbs=", ".join(elsewhere()))
    return f"""\
Stretto: Perfetto's tracing stack for Python.

{verbs}

{start}
`stretto VERB --help` shows a verb's options and examples.
"""


def _run(arguments: Sequence[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(_help(), end="")
        return 0 if arguments else USAGE_EXIT_CODE
    if arguments[0] in ("-V", "--version"):
        import stretto

        print(f"stretto {stretto.__version__}")
        return 0
    return _run_verb(arguments[0], arguments[1:])


def _run_verb(verb: str, arguments: Sequence[str]) -> int:
    """Run a verb, and return its exit code.

    Raises:
        CommandError: There is no such verb, or the verb needs the native part, which is missing in
            this installation.
    """
    try:
        run = load_verb(verb)
        _freeze_modules()
        return int(run(arguments))
    except ImportError:
        if _has_native_part():
            raise
        raise CommandError(
            f"{verb}: this is Stretto without its native part: programs run, but nothing is "
            f"recorded. {_WHEEL}"
        ) from None


def _has_native_part() -> bool:
    """Return whether the native part is installed; without Linux, the part that reads traces."""
    import stretto
    from stretto.analysis import trace_tables

    return stretto.available() or (not RECORDS and trace_tables.available())


def _freeze_modules() -> None:
    """Exclude the imported modules from garbage collections, and end the pause of collections.

    This makes the start and the end of the process faster. No effect if `main` made no pause.
    """
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def _disconnect() -> None:
    """Undo a connection made by STRETTO_CONNECT: a service must not be its own producer."""
    connection = sys.modules.get("stretto.client.connection")
    if connection is not None:
        connection.disconnect()


def _write_utf8() -> None:
    """Write UTF-8 and ends of lines as on Linux, also to pipes and files of Windows."""
    for stream in (sys.stdout, sys.stderr) if os.name == "nt" else ():
        if isinstance(stream, io.TextIOWrapper) and not stream.isatty():
            stream.reconfigure(encoding="utf-8", newline="\n")


def _discard_output() -> None:
    """Redirect standard output to /dev/null, so that the interpreter's last flush succeeds."""
    if sys.stdout is None:
        return
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def _print_error(text: str) -> None:
    if sys.stderr is not None:  # With file=None, print writes to standard output.
        print(f"stretto: {text}", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: the arguments without the program's name; None for those of this process.

    Returns:
        The exit code.
    """
    if arguments is None:
        gc.disable()
    _disconnect()
    _write_utf8()
    try:
        exit_code = _run(sys.argv[1:] if arguments is None else arguments)
        if sys.stdout is not None:
            sys.stdout.flush()
        return exit_code
    except CommandError as error:
        _print_error(str(error))
        return error.exit_code
    except StrettoError as error:
        _print_error(str(error))
        return 1
    except OSError as error:
        if is_broken_pipe(error):
            _discard_output()
            return BROKEN_PIPE_EXIT_CODE
        if error.filename is not None or error.errno not in _OUTPUT_ERRORS:
            raise
        _discard_output()
        _print_error(f"can't write the output: {error.strerror}.")
        return 1
    except KeyboardInterrupt:
        return 130
