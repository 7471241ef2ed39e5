"""Stacks of samples have the names of function slices, and no machinery."""

from __future__ import annotations

import threading
from typing import Any

from stretto.profilers.sampling.interned_stacks import InternedStacks
from stretto.profilers.sampling.objects import CodeName

BOOTSTRAP = "<frozen importlib._bootstrap>"
SPAWN = "/usr/lib/python3.12/multiprocessing/spawn.py"
CODES = {
    "script": ("<module>", "/srv/shop.py"),
    "command": ("<module>", "<string>"),
    "load": ("_find_and_load", BOOTSTRAP),
    "body": ("<module>", "/srv/cart.py"),
    "order": ("order", "/srv/shop.py"),
    "unread": ("?", "?"),
    "total": ("Cart.total", "/srv/cart.py"),
    "spawn_main": ("spawn_main", SPAWN),
    "run_path": ("run_path", "<frozen runpy>"),
    "bootstrap": ("Thread._bootstrap", threading.__file__),
}
NUMBERS = {code: number for number, code in enumerate(CODES, 1)}


class Reader:
    """Names code objects whose addresses are the numbers of CODES."""

    def code_name(self, address: int) -> CodeName:
        return CodeName(*list(CODES.values())[address - 1])

    def identity(self, address: int) -> bytes:
        return bytes([address])


def shown(*stacks: list[str], scripts: set[str] | None = None) -> list[list[str]]:
    """Return the functions of the stacks, and check that the trace has the same names."""
    reader: Any = Reader()
    interned = InternedStacks(reader, scripts)
    interned.add_frames([(number, 1) for number in NUMBERS.values()])
    interned.add_stacks([tuple(NUMBERS[code] for code in stack) for stack in stacks])
    data = interned.take()
    assert data is not None
    names = {each.iid: bytes(each.str).decode() for each in data.function_names}
    frames = {frame.iid: names[frame.function_name_id] for frame in data.frames}
    written = [[frames[number] for number in stack.frame_ids] for stack in data.callstacks]
    counted = [[key.function for key in interned.functions(stack)] for stack in interned.stacks]
    assert counted == written
    return written


def test_script_and_imported_module_have_their_names() -> None:
    assert shown(["script", "load", "body"]) == [["shop.py", "import cart"]]
    assert shown(["bootstrap", "load", "body"]) == [["import cart"]]
    assert shown(["run_path", "body", "total"]) == [["cart.py", "Cart.total"]]


def test_functions_have_their_module_unless_it_is_the_script() -> None:
    stack = ["script", "order", "total", "unread"]
    assert shown(stack) == [["shop.py", "order", "cart.Cart.total", "?"]]
    assert shown(["bootstrap", "order"], ["script"]) == [["order"], ["shop.py"]]


def test_script_of_one_process_is_the_script_of_its_workers() -> None:
    assert shown(["bootstrap", "order"], scripts={"/srv/shop.py"}) == [["order"]]


def test_machinery_is_left_out() -> None:
    assert shown(["script", "load"]) == [["shop.py"]]
    assert shown(["bootstrap", "total"]) == [["cart.Cart.total"]]


def test_stack_of_machinery_alone_keeps_its_innermost_call() -> None:
    assert shown(["bootstrap", "load"]) == [["importlib._bootstrap._find_and_load"]]


def test_command_of_a_spawned_worker_is_left_out() -> None:
    stack = ["command", "spawn_main", "run_path", "script"]
    assert shown(stack) == [["shop.py"]]
    assert shown(["command", "load", "body"]) == [["<module>", "import cart"]]
