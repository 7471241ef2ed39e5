"""Objects that are exempt from garbage collections stay usable; all others are collected as before.

Each test runs in a process of its own, because what is exempt stays so.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig

import pytest

pytestmark = pytest.mark.skipif(
    bool(sysconfig.get_config_var("Py_GIL_DISABLED")), reason="free-threaded builds have no lists"
)

BEGIN = """
import gc, weakref
from stretto import _native

class Node:
    def __init__(self):
        self.itself = self

def tracked(thing):
    return any(thing is other for other in gc.get_objects())

older = [[] for _ in range(10)]
gc.disable()
first = gc.get_stats()
"""


def run(program: str) -> None:
    subprocess.run([sys.executable, "-c", BEGIN + program], check=True)


def test_what_was_created_since_is_exempt_and_nothing_else() -> None:
    run("""
ours = [{"number": [number]} for number in range(5000)]
assert _native.exempt_since(first) is True
later = [[] for _ in range(10)]
gc.enable()
assert not any(map(tracked, (ours, ours[0], ours[-1]["number"])))
assert all(map(tracked, (older, older[0], first, later, later[-1])))
gc.collect()
assert not tracked(ours) and tracked(older) and tracked(later)
assert ours[4999]["number"] == [4999]
""")


def test_what_was_created_between_two_moments_is_exempt_also_after_a_freeze() -> None:
    run("""
ours = [[number] for number in range(5000)]
last = gc.get_stats()
gc.freeze()
gc.unfreeze()
later = [[] for _ in range(10)]
assert _native.exempt_between(first, last) is True
gc.enable()
assert not any(map(tracked, (ours, ours[0], ours[-1])))
assert all(map(tracked, (older, older[-1], first, last, later, later[-1])))
gc.collect()
assert not tracked(ours) and tracked(later) and ours[4999] == [4999]
""")


def test_nothing_is_exempt_after_a_collection_between_two_moments_or_later() -> None:
    run("""
ours = [[number] for number in range(10)]
last = gc.get_stats()
gc.collect()
assert _native.exempt_between(first, last) is False
assert _native.exempt_between(first, gc.get_stats()) is False
assert _native.exempt_between(gc.get_stats(), last) is False
assert tracked(ours)
""")


def test_exempt_objects_can_be_freed_and_changed() -> None:
    run("""
ours = [[number] for number in range(1000)]
assert _native.exempt_since(first)
gc.enable()
del ours[::3]
ours[0].append(ours)
del ours
gc.collect()
""")


def test_garbage_among_what_is_exempt_stays_and_other_garbage_is_collected() -> None:
    run("""
node = Node()
kept = weakref.ref(node)
del node
assert _native.exempt_since(first)
node = Node()
node.kept = kept()
garbage = weakref.ref(node)
del node
gc.collect()
assert garbage() is None and kept() is not None
""")


def test_further_objects_can_be_exempt_later() -> None:
    run("""
one = [[]]
assert _native.exempt_since(first)
first = gc.get_stats()
two = [[]]
assert _native.exempt_since(first)
assert not tracked(one) and not tracked(two)
assert _native.exempt_since(gc.get_stats())
""")


def test_nothing_is_exempt_if_there_was_a_collection() -> None:
    run("""
ours = [[]]
gc.collect()
ours.append([])
assert _native.exempt_since(first) is False
assert tracked(ours) and tracked(ours[1])
assert _native.exempt_since(1) is False
""")


def test_kept_definitions_are_immortal_and_instances_are_freed() -> None:
    run("""
import sys
def function(): return ("text 1", "text 2")
class Other(Node): pass
node = Other()
node.itself = None
kept = [function, Other, function(), vars(sys.modules["__main__"])["function"]]
is_freed = weakref.ref(node)
assert _native.exempt_since(first)
_native.keep_exempt(True)
_native.keep_exempt(True)
immortal = [function, Other, kept, function.__code__, function.__code__.co_consts[1]]
counts = [sys.getrefcount(thing) for thing in immortal]
more = 3 * immortal
if sys.version_info >= (3, 12):
    assert counts == [sys.getrefcount(thing) for thing in immortal]
del node
assert is_freed() is None
assert function() == ("text 1", "text 2")
""")


def test_containers_are_freed_unless_asked_to_be_kept() -> None:
    run("""
import os, sys
read, write = os.pipe()
def function(): pass
kept = [function, open(write, "w")]
assert _native.exempt_since(first)
_native.keep_exempt(False)
del kept
assert os.read(read, 1) == b""
count = sys.getrefcount(function)
more = [function, function]
assert sys.version_info < (3, 12) or sys.getrefcount(function) == count
""")
