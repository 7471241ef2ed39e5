"""Heap profiles: which Python calls hold memory, and which have allocated it; and object graphs.

    source.py                the data source `python.heap`: one profile per process
    dumps.py                 dumps of the profile
    heap_sequence.py         the packets of one heap's dumps
    stacks.py                the interned data of the dumps
    function_counters.py     counter tracks of the functions that hold or allocate most
    heap_file.py             the samples of malloc that the preloaded library has taken in a process
    native_stacks.py         the interned data of their dumps
    object_graph.py          the data source `python.object_graph`: objects, and who holds them
    selected_processes.py    which processes the config of both names

The samples themselves are taken by native code, `native/hooks/heap_hooks.h`.

A program that calls `stretto.connect()`, or that a recorder has started, has the data source. Other
programs call `HeapProfile.register()` before their session.
"""

from __future__ import annotations

from stretto.profilers.heap.source import HeapProfile, dump

__all__ = ["HeapProfile", "dump"]
