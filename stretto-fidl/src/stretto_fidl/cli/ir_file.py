"""Reads the JSON IR of a library for a subcommand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from stretto.base.errors import CommandError


def read_ir(verb: str, name: str) -> Any:
    """Read the IR of a library.

    Args:
        verb: The subcommand, for error messages.
        name: The name of the file.

    Raises:
        CommandError: The file can't be read, or is not an IR.
    """
    try:
        ir = json.loads(Path(name).read_text("utf-8"))
    except OSError as error:
        raise CommandError(f"{verb}: can't read {name!r}: {error.strerror}.") from error
    except ValueError as error:
        raise CommandError(f"{verb}: {name!r} isn't JSON: {error}.") from error
    except RecursionError as error:
        raise CommandError(f"{verb}: {name!r} is too deeply nested for an IR.") from error
    if not isinstance(ir, dict) or "name" not in ir or "library_dependencies" not in ir:
        raise CommandError(
            f"{verb}: {name!r} isn't the IR of a library: "
            "`stretto fidl compile … --json` writes it."
        )
    return ir
