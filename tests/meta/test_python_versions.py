"""A table lists each private or unstable CPython name that the C sources use, with its versions.

Each row has the CPython versions whose headers declare the name. A new private name needs a new
row. For a new CPython, look up each name with an open range (`3.12-`) in its headers.
"""

from __future__ import annotations

import re

from tests.support.sources import ROOT

NAMES = {
    "_PyCode_GetExtra": "3.11",
    "_PyCode_SetExtra": "3.11",
    "_PyEval_RequestCodeExtraIndex": "3.11",
    "PyUnstable_Code_GetExtra": "3.12-",
    "PyUnstable_Code_SetExtra": "3.12-",
    "PyUnstable_Eval_RequestCodeExtraIndex": "3.12-",
    "PyUnstable_Long_CompactValue": "3.12-",
    "PyUnstable_Long_IsCompact": "3.12-",
    "Py_BUILD_CORE": "3.11-",
    "_PyInterpreterFrame": "3.11-",
    "_PyCFrame": "3.11-3.12",
    "->cframe": "3.11-3.12",
    "->current_frame": "3.11-",
    "->context_ver": "3.11-",
    "pycore_frame.h": "3.11-",
    "pycore_interp.h": "3.11-",
    "pycore_interpframe.h": "3.14-",
}
"""Name: the versions of CPython that it is used with."""

PATTERN = re.compile(
    r"\b_Py\w+|\bPyUnstable_\w+|\bPy_BUILD_CORE\b|\bpycore_\w+\.h"
    r"|->(?:cframe|current_frame|context_ver)\b"
)


def test_each_private_name_is_listed_with_its_versions() -> None:
    paths = [
        path for part in ("bind", "hooks") for path in (ROOT / "native" / part).rglob("*.[ch]")
    ]
    found = {name for path in paths for name in PATTERN.findall(path.read_text())}
    assert found == set(NAMES)


def test_each_row_has_a_version_or_a_range_of_versions() -> None:
    for name, versions in NAMES.items():
        assert re.fullmatch(r"3\.\d+(-(3\.\d+)?)?", versions), name
