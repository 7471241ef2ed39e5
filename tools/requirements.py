"""Print the requirements of extras of pyproject.toml as a requirements file.

    python tools/requirements.py build lint test > requirements.txt

It uses the standard library only: it runs before any package is installed.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parent.parent / "pyproject.toml"


def requirements(extras: list[str]) -> list[str]:
    """Return the requirements of the named extras, in order.

    Raises:
        KeyError: An extra does not exist.
    """
    table = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    return [requirement for extra in extras for requirement in table[extra]]


if __name__ == "__main__":
    print("\n".join(requirements(sys.argv[1:])))
