"""Reading the JSON IR that a command is given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from stretto.base.errors import CommandError


def read_ir(verb: str, name: str) -> Any:
    """The IR of a library.

    Args:
        verb: Who says so if it can't be read.
        name: The file's.

    Raises:
        CommandError: It can't be read, or is no IR.
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
