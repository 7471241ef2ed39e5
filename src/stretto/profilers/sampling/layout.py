"""Layouts: the offsets of the members that a sampler reads, in each CPython version.

CPython 3.13 and later have a table of their offsets at the start of `_PyRuntime`
(`_Py_DebugOffsets`). The order of the table's entries is fixed for a minor version; this module has
the orders of 3.13, 3.14 and 3.15 (Include/internal/pycore_debug_offsets.h). 3.11 and 3.12 have no
such table, so their offsets are here; they are the same in all patch releases.
"""

from __future__ import annotations

import struct

OFFSETS_COOKIE = b"xdebugpy"
OFFSETS_BYTES = 1024
"""How much to read of `_PyRuntime`: more than the table of any version."""

SUPPORTED = ((3, 11), (3, 12), (3, 13), (3, 14), (3, 15))

_RUNTIME = "size finalizing interpreters_head"
_INTERPRETER_13 = (
    "size id next threads_head gc imports_modules sysdict builtins ceval_gil gil gil_enabled "
    "gil_locked gil_holder"
)
_INTERPRETER_14 = (
    "size id next threads_head threads_main gc imports_modules sysdict builtins ceval_gil gil "
    "gil_enabled gil_locked gil_holder code_object_generation tlbc_generation"
)
_THREAD_13 = "size prev next interp frame id native_id chunk status"
_THREAD_15 = (
    "size prev next interp frame base_frame last_profiled_frame last_profiled_frame_seq id "
    "native_id chunk status holds_gil gil_requested current_exception exc_state"
)
_FRAME_13 = "size previous code instruction locals owner"
_CODE = (
    "size filename name qualname line_table first_line argcount localsplusnames localspluskinds "
    "start"
)

_OBJECTS_14 = (
    ("code", f"{_CODE} tlbc"),
    ("object", "size type"),
    ("type", "size name repr flags"),
    ("tuple", "size items count"),
    ("list", "size items count"),
    ("set", "size used table mask"),
    ("dict", "size keys values"),
    ("float", "size value"),
    ("long", "size tag digit"),
    ("bytes_object", "size count data"),
    ("text_object", "size state length ascii"),
    ("gc", "size collecting"),
    ("gen", "size name iframe frame_state"),
    ("list", "next prev"),
)
_OBJECTS_15 = (
    ("code", f"{_CODE} tlbc"),
    ("object", "size type"),
    ("type", "size name repr flags basicsize dictoffset"),
    ("heap_type", "size cached_keys"),
    ("tuple", "size items count"),
    ("list", "size items count"),
    ("set", "size used table mask"),
    ("dict", "size keys values"),
    ("float", "size value"),
    ("long", "size tag digit"),
    ("bytes_object", "size count data"),
    ("text_object", "size state length ascii compact"),
    ("gc", "size collecting frame stats_size stats"),
    ("gen", "size name iframe frame_state"),
    ("list", "next prev"),
)

_Groups = tuple[tuple[str, str], ...]
_ORDERS: dict[tuple[int, int], _Groups] = {
    (3, 13): (
        ("runtime", _RUNTIME),
        ("interpreter", _INTERPRETER_13),
        ("thread", _THREAD_13),
        ("frame", _FRAME_13),
        ("code", _CODE),
    ),
    (3, 14): (
        ("runtime", _RUNTIME),
        ("interpreter", _INTERPRETER_14),
        ("thread", _THREAD_13),
        ("frame", f"{_FRAME_13} stackpointer tlbc_index"),
        *_OBJECTS_14,
    ),
    (3, 15): (
        ("runtime", _RUNTIME),
        ("interpreter", _INTERPRETER_14),
        ("thread", _THREAD_15),
        ("error", "value"),
        ("frame", f"{_FRAME_13} stackpointer tlbc_index"),
        *_OBJECTS_15,
    ),
}

_KNOWN: dict[tuple[int, int], dict[str, int]] = {
    (3, 11): {
        "runtime_interpreters_head": 40,
        "interpreter_next": 0,
        "interpreter_threads_head": 16,
        "interpreter_imports_modules": 888,
        "thread_next": 8,
        "thread_id": 152,
        "thread_native_id": 160,
        "thread_frame": 56,
        "thread_chunk": 296,
        "control_frame": 8,
        "frame_code": 32,
        "frame_previous": 48,
        "frame_owner": 69,
        "frame_is_entry": 68,
        "frame_instruction": 56,
        "code_first_line": 72,
        "code_start": 184,
    },
    (3, 12): {
        "runtime_interpreters_head": 40,
        "interpreter_next": 0,
        "interpreter_threads_head": 72,
        "interpreter_ceval_gil": 384,
        "interpreter_imports_modules": 944,
        "gil_holder": 8,
        "gil_locked": 16,
        "thread_next": 8,
        "thread_id": 136,
        "thread_native_id": 144,
        "thread_frame": 56,
        "thread_chunk": 232,
        "control_frame": 0,
        "frame_code": 0,
        "frame_previous": 8,
        "frame_owner": 70,
        "frame_instruction": 56,
        "code_first_line": 68,
        "code_start": 192,
    },
}
_CODE_TEXTS = {
    "code_filename": 112,
    "code_name": 120,
    "code_qualname": 128,
    "code_line_table": 136,
}
_OBJECTS = {"object_type": 8, "set_mask": 32, "set_table": 40}

_OWNERS = {(3, 11): (3, 2), (3, 12): (3, 3), (3, 13): (3, 3), (3, 14): (3, 4), (3, 15): (3, 3)}
"""By version: the lowest `owner` of frames that are no Python calls, and the highest `owner`."""


_SUSPENDED_BEFORE_14 = {
    "gen_suspended_in_await": 0xFF,
    "gen_cleared": 4,
    "gen_awaited_depth": 8,
    "frame_stacktop": 64,
    "frame_locals": 72,
}
_GENERATORS = {
    (3, 11): {**_SUSPENDED_BEFORE_14, "gen_frame_state": 75, "gen_iframe": 80},
    (3, 12): {**_SUSPENDED_BEFORE_14, "gen_frame_state": 67, "gen_iframe": 72},
    (3, 13): {**_SUSPENDED_BEFORE_14, "gen_frame_state": 67, "gen_iframe": 72},
    (3, 14): {"gen_suspended_in_await": 0xFF, "gen_cleared": 4, "gen_awaited_depth": 8},
    (3, 15): {"gen_suspended_in_await": 2, "gen_cleared": 5, "gen_awaited_depth": 16},
}
"""By version: values of `gi_frame_state`, as a byte, and how far below the top of its stack a
generator has what it awaits: since 3.15 an index is above it. Before 3.14, the top is a number of
words, and a coroutine that is suspended always awaits something."""

_CACHED_KEYS = {(3, 11): 872, (3, 12): 880, (3, 13): 880, (3, 14): 880, (3, 15): 888}
"""By version: the offset, in a class, of the keys that its instances share."""


class Layout(dict[str, int]):
    """The offsets of one CPython version, in bytes, by name: the layout of `PythonSampler`.

    The entry `has_gil` is no offset: it is 1 if the holder of the GIL can be read, else 0.
    """

    version: tuple[int, int]


def layout_of(version: tuple[int, int], runtime: bytes) -> Layout:
    """Return the layout of an interpreter.

    Args:
        version: Major and minor version.
        runtime: The first `OFFSETS_BYTES` bytes of its `_PyRuntime`.

    Raises:
        ValueError: The version isn't supported, the interpreter is a free-threaded build, or its
            table of offsets is missing or of another version.
    """
    if version not in SUPPORTED:
        raise ValueError(f"CPython {version[0]}.{version[1]} is not supported: 3.11 to 3.15 are")
    layout = Layout(_CODE_TEXTS | _OBJECTS)
    layout.version = version
    layout.update(_KNOWN[version] if version in _KNOWN else _from_table(version, runtime))
    foreign, last = _OWNERS[version]
    has_control = int(version < (3, 13))
    layout.setdefault("control_frame", 0)
    layout.update(
        has_control_frame=has_control,
        first_foreign_owner=foreign,
        last_owner=last,
        code_tag=3 if version >= (3, 14) else 0,
        bytes_size=16,
        bytes_data=32,
        text_length=16,
        text_state=32,
        text_ascii=48 if version == (3, 11) else 40,
        text_compact=72 if version == (3, 11) else 56,
        type_cached_keys=_CACHED_KEYS[version],
        has_gil=int("gil_holder" in layout),
        **_GENERATORS[version],
    )
    return layout


def _from_table(version: tuple[int, int], runtime: bytes) -> dict[str, int]:
    if runtime[:8] != OFFSETS_COOKIE:
        raise ValueError("its _PyRuntime has no table of offsets")
    table, free_threaded = struct.unpack_from("<QQ", runtime, 8)
    if (table >> 24, table >> 16 & 0xFF) != version:
        raise ValueError(f"its table of offsets is of another version, {table:#x}")
    if free_threaded:
        raise ValueError("free-threaded builds are not supported")
    at, offsets = 24, {}
    for group, names in _ORDERS[version]:
        for name in names.split():
            (offsets[f"{group}_{name}"],) = struct.unpack_from("<Q", runtime, at)
            at += 8
    # In the table, these offsets start at the interpreter. Interpreters can share a GIL, so the
    # offsets in the layout start at the GIL.
    for name in ("locked", "holder"):
        offsets[f"gil_{name}"] = offsets[f"interpreter_gil_{name}"] - offsets["interpreter_gil"]
    return offsets
