"""The verb `autostart`: a file that connects Python programs started with STRETTO_CONNECT=1.

    site-packages/stretto-autostart.pth     one line, run by `site` as each interpreter starts

`site` runs .pth files also under -I and -E, but not under -S. In some environments it runs them
more than once: connecting is idempotent. If the variable isn't set, the line only tests it. If
Stretto can't be imported, the line prints nothing.
"""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

from stretto.base.errors import CommandError
from stretto.cli.verb_parser import VerbParser

if TYPE_CHECKING:
    from collections.abc import Sequence

FILE_NAME = "stretto-autostart.pth"

# The line is short, because each interpreter compiles it when the interpreter starts.
LINE = """import os; os.environ.get('STRETTO_CONNECT') and exec("""
LINE += r""""try:\n if os.environ['STRETTO_CONNECT'] != '0':"""
LINE += r"""\n  import stretto\n  stretto.connect()\nexcept Exception:\n pass")""" + "\n"

DESCRIPTION = """\
Connect Python programs to the tracing service without changing them: programs started with
STRETTO_CONNECT=1 in their environment call stretto.connect() before their first line.

  stretto autostart --install        for all programs of this environment
  STRETTO_CONNECT=1 gunicorn app:app

--install puts one small file into this environment's site-packages. Without the variable the
file has no effect.
"""

NOT_INSTALLED = 1


def _parse(arguments: Sequence[str]) -> str:
    parser = VerbParser("autostart", DESCRIPTION)
    verbs = parser.add_mutually_exclusive_group(required=True)
    for verb, text in (
        ("install", "install the file, unless it is installed"),
        ("uninstall", "remove the file, if it is installed"),
        ("status", "print whether the file is installed; exit code 1 if it isn't"),
    ):
        verbs.add_argument(f"--{verb}", dest="verb", action="store_const", const=verb, help=text)
    return str(parser.parse_args(arguments).verb)


def _folders() -> list[Path]:
    """Return the folders that `site` searches for .pth files, the preferred one first."""
    known = site.getsitepackages()
    own = sysconfig.get_path("purelib")
    folders = [own] if own in known else []
    folders += [folder for folder in known if folder != own]
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    return [Path(folder) for folder in folders]


def _installed() -> list[Path]:
    files = [folder / FILE_NAME for folder in _folders()]
    return [file for file in files if file.is_file()]


def _write(file: Path) -> None:
    """Write the file atomically: an interpreter may start at any moment."""
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_suffix(f".{os.getpid()}")
    try:
        temporary.write_text(LINE, encoding="utf-8")
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


def _install() -> int:
    problems = []
    folders = [file.parent for file in _installed()] or _folders()
    for folder in folders:
        file = folder / FILE_NAME
        try:
            if not file.is_file() or file.read_text(encoding="utf-8") != LINE:
                _write(file)
        except OSError as error:
            problems.append(f"{folder} ({error.strerror})")
            continue
        print(f"{file}\nPrograms of {sys.prefix} connect if STRETTO_CONNECT=1 is set.")
        return 0
    where = ", ".join(problems) or f"{sys.prefix} has no site-packages"
    raise CommandError(
        f"autostart: no folder can be written to: {where}. Use a virtual environment."
    )


def _uninstall() -> int:
    files = _installed()
    for file in files:
        try:
            file.unlink()
        except OSError as error:
            raise CommandError(f"autostart: can't remove {file}: {error.strerror}.") from error
        print(f"removed {file}")
    if not files:
        print("not installed")
    return 0


def _status() -> int:
    files = _installed()
    for file in files:
        print(f"installed: {file}")
    if not files:
        print("not installed")
    return 0 if files else NOT_INSTALLED


def run(arguments: Sequence[str]) -> int:
    """Run `stretto autostart`.

    Raises:
        CommandError: the command line is wrong, or the file can't be written or removed.
    """
    verbs = {"install": _install, "uninstall": _uninstall, "status": _status}
    return verbs[_parse(arguments)]()
