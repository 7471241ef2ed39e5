"""Files and folders that only their owner can read: what a trace holds may be private.

On Windows they have the permissions of the folder around them.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from stretto.base.portable import CLOSED_ON_EXEC

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def private_file(path: str | os.PathLike[str]) -> Iterator[None]:
    """Create an empty file (mode 0600), unless there is one; the block writes it by its path.

    What exists keeps its mode, and isn't opened: the reader of a pipe would see its end. If the
    block fails, a new file is removed.

    Args:
        path: The file.

    Raises:
        OSError: The file can't be created, or not be written.
    """
    new = not os.path.exists(path)
    if new:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | CLOSED_ON_EXEC, 0o600))
    try:
        yield
    except BaseException:
        if new:
            with suppress(OSError):
                os.unlink(path)
        raise


def private_folders(top: Path, *names: str) -> Path:
    """Create a folder and the folders in it (mode 0700); return the innermost one.

    Folders that exist keep their mode.

    Args:
        top: The outermost folder that is private; folders around it have the usual mode.
        names: The names of the folders in it, each inside the one before.

    Raises:
        OSError: A folder can't be created.
    """
    top.mkdir(0o700, parents=True, exist_ok=True)
    for name in names:
        top /= name
        top.mkdir(0o700, exist_ok=True)
    return top
