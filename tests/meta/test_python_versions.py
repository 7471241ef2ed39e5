"""A table lists each private or version-specific CPython name that the C sources use.

Each row has the CPython versions in which the sources use the name. The tests check that the
headers of the running interpreter have all names of its version. For a new CPython, `make newest`
runs them; rows are then needed for new and for removed names.
"""

from __future__ import annotations

import re
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.support.sources import ROOT

NAMES = {
    "_PyCode_GetExtra": "3.11",
    "_PyCode_SetExtra": "3.11",
    "_PyEval_RequestCodeExtraIndex": "3.11",
    "_PyRuntime": "3.11",
    "_Py_atomic_store_relaxed": "3.11",
    "PyUnstable_Code_GetExtra": "3.12-",
    "PyUnstable_Code_SetExtra": "3.12-",
    "PyUnstable_Eval_RequestCodeExtraIndex": "3.12-",
    "PyUnstable_Long_CompactValue": "3.12-",
    "PyUnstable_Long_IsCompact": "3.12-",
    "Py_BUILD_CORE": "3.11-",
    "Py_mod_gil": "3.13-",
    "Py_MOD_GIL_USED": "3.13-",
    "_PyFrame_GetGenerator": "3.11",
    "_PyGCHead_NEXT": "3.11-",
    "_PyGCHead_PREV": "3.11-",
    "_PyGCHead_SET_NEXT": "3.11-",
    "_PyGCHead_SET_PREV": "3.11-",
    "_PyInterpreterFrame": "3.11-",
    "_PyInterpreterFrame_LASTI": "3.11-",
    "_Py_AS_GC": "3.11-",
    "_PyCFrame": "3.11-3.12",
    "_PyType_Lookup": "3.11-",
    "_PyThreadState_UncheckedGet": "3.11-3.12",
    "_Py_CODEUNIT": "3.11-",
    "_co_firsttraceable": "3.11",
    "_co_instrumentation_version": "3.12-",
    "FRAME_OWNED_BY_CSTACK": "3.12-3.14",
    "FRAME_OWNED_BY_FRAME_OBJECT": "3.11-",
    "FRAME_OWNED_BY_GENERATOR": "3.11",
    "FRAME_OWNED_BY_INTERPRETER": "3.14-",
    "f_code": "3.11-3.12",
    "f_executable": "3.13-",
    "native_thread_id": "3.11-",
    "->c_profilefunc": "3.11-",
    "->c_profileobj": "3.11-",
    "->c_tracefunc": "3.11",
    "->cframe": "3.11-3.12",
    "->context": "3.11-",
    "->context_ver": "3.11-",
    "->current_frame": "3.11-",
    "->f_frame": "3.11",
    "->owner": "3.11-",
    "->previous": "3.11-",
    "->threads": "3.11-",
    "->tracing": "3.11",
    "->use_tracing": "3.11",
    "BEFORE_WITH": "3.11-3.13",
    "CALL_KW": "3.13-",
    "pycore_dict.h": "3.11-",
    "pycore_frame.h": "3.11-",
    "pycore_gc.h": "3.11-",
    "pycore_interp.h": "3.11-",
    "pycore_interpframe.h": "3.14-",
    "pycore_runtime.h": "3.11",
}
"""Name: the versions of CPython that it is used with. `->` marks a member of a struct."""

PATTERN = re.compile(
    r"\b_Py\w+|\bPyUnstable_\w+|\bPy_BUILD_CORE\b|\bPy_(?:mod_gil|MOD_GIL\w+)|\bpycore_\w+\.h"
    r"|\b_co_\w+|\bFRAME_OWNED_BY_\w+|\bf_(?:code|executable)\b|\bnative_thread_id(?=\))"
    r"|\bBEFORE_WITH\b|\bCALL_KW\b"
    r"|(?:thread|t|Get\(\)|python)(->(?:c_\w+|cframe|context|context_ver|current_frame|tracing))\b"
    r"|(->(?:f_frame|use_tracing|threads)|(?<=\bf)->(?:owner|previous))\b"
)
"""The last two alternatives are members of a thread, a frame or an interpreter."""

CONDITIONAL = {
    "arguments of a call are read from its frame": "call_values.c",
    "arguments and results of calls need sys.monitoring": "module.c",
    "auto detail without sys.monitoring": "python_layout.h",
    "calls are reported by sys.monitoring": "monitoring.c",
    "calls are reported by the profile function": "profile.c",
    "names of the functions for extra data of code": "code_filter.c",
    "heads of objects in their sizes": "object_sizes.c",
    "immortal objects": "exempt.c",
    "places of the members of frames and threads": "python_layout.c",
}
"""Reason: the file that compares the version of CPython, of native/hooks but for exempt.c."""


def used_names() -> set[str]:
    found: set[str] = set()
    for part in ("bind", "hooks"):
        for path in (ROOT / "native" / part).rglob("*.[ch]"):
            for match in PATTERN.finditer(path.read_text()):
                found.add(match[1] or match[2] or match[0])
    return found


def is_used_with(versions: str, minor: int) -> bool:
    first, to, last = versions.replace("3.", "").partition("-")
    return int(first) <= minor <= (int(last) if last else 99 if to else int(first))


def test_table_lists_exactly_the_cpython_names_that_sources_use() -> None:
    assert used_names() == set(NAMES)


def test_each_table_row_has_a_cpython_version_or_a_range_of_versions() -> None:
    for name, versions in NAMES.items():
        assert re.fullmatch(r"3\.\d+(-(3\.\d+)?)?", versions), name


def test_only_listed_files_of_the_hooks_compare_versions() -> None:
    native = ROOT / "native"
    paths = [*(native / "hooks").iterdir(), native / "bind" / "common" / "exempt.c"]
    found = {path.name for path in paths if "PY_VERSION_HEX" in path.read_text()}
    assert found == set(CONDITIONAL.values())


def test_cpython_headers_have_the_names_that_the_table_lists_for_their_version() -> None:
    folder = Path(sysconfig.get_path("include"))
    headers = {path.name: path.read_text() for path in folder.rglob("*.h")}
    if not headers:
        pytest.skip(f"no headers in {folder}")
    words = set(headers) | {word for text in headers.values() for word in re.findall(r"\w+", text)}
    minor = sys.version_info.minor
    expected = {name.removeprefix("->") for name in NAMES if is_used_with(NAMES[name], minor)}
    assert expected <= words
