"""Makes and removes the private folder, and the environment that leads to it."""

from __future__ import annotations

import os
import shutil
import tempfile

from stretto.base.errors import CommandError
from stretto.base.unix_socket import MAX_PATH_BYTES
from stretto.cli.record.workspace import VARIABLE, Options, Workspace

PREFIX = "stretto-"


def _candidates() -> list[str]:
    """Folders that may hold ours; the first is the user's own and vanishes with the session."""
    places = [os.environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir(), "/tmp"]
    room = len("/" + PREFIX + "12345678/producer.sock")
    return [place for place in places if place and len(os.fsencode(place)) + room <= MAX_PATH_BYTES]


def _make() -> str:
    """A new folder that only we can enter.

    Raises:
        CommandError: there is no place for it.
    """
    reasons = []
    for place in _candidates():
        try:
            return tempfile.mkdtemp(prefix=PREFIX, dir=place)
        except OSError as error:
            reasons.append(f"{place}: {error.strerror}")
    raise CommandError(
        f"record: no temporary folder ({'; '.join(reasons)}): set TMPDIR to one that is writable."
    )


def create(options: Options) -> Workspace:
    """A new workspace.

    Args:
        options: for the recorded processes.

    Raises:
        CommandError: it can't be made.
    """
    workspace = Workspace(_make())
    try:
        os.mkdir(workspace.site)
        os.mkdir(workspace.notes)
        os.mkdir(workspace.failures)
        source = os.path.join(os.path.dirname(__file__), "sitecustomize.py")
        shutil.copyfile(source, os.path.join(workspace.site, "sitecustomize.py"))
        workspace.write_options(options)
    except OSError as error:
        remove(workspace)
        raise CommandError(f"record: {error}: set TMPDIR to another folder.") from error
    return workspace


def remove(workspace: Workspace) -> None:
    """Remove it with all that is in it. Processes that live on do without."""
    shutil.rmtree(workspace.folder, ignore_errors=True)


def environment(workspace: Workspace) -> dict[str, str]:
    """Our environment, changed so that every Python started with it comes to us."""
    variables = dict(os.environ)
    path = variables.get("PYTHONPATH")
    variables["PYTHONPATH"] = f"{workspace.site}{os.pathsep}{path}" if path else workspace.site
    variables[VARIABLE] = workspace.folder
    return variables
