"""Events of a thread that CPython knows under one PyThreadState after another.

A thread of C that calls Python gets a new PyThreadState for each call. Here the calls are the start
routine of the thread, and the destructors of a key of thread-specific data. Destructors run in the
order of their keys, so the key has to be older than that of `stretto`: hence a new process.
"""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import asyncio, ctypes

libc = ctypes.CDLL(None)
key, thread = ctypes.c_uint(), ctypes.c_ulong()
calls = []

@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
def call(argument):
    calls.append(None)
    category.instant("call")
    asyncio.run(task())
    category.instant("call")
    if len(calls) < 3:
        libc.pthread_setspecific(key, ctypes.c_void_p(1))

async def task():
    for _ in range(2):
        category.instant("task")

libc.pthread_key_create(ctypes.byref(key), call)
import stretto
from tests.support.recorded_events import record

category = stretto.Category("test.python_states")
with record() as recorded:
    libc.pthread_create(ctypes.byref(thread), None, call, None)
    libc.pthread_join(thread, None)
for event in recorded.events:
    print(event.name, event.track)
"""


def test_each_call_of_a_thread_of_c_finds_its_task():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert not done.stderr
    events = [line.split() for line in done.stdout.splitlines()]
    assert [name for name, _ in events] == 3 * ["call", "task", "task", "call"]
    assert len({track for name, track in events if name == "call"}) == 1
    tasks = [track for name, track in events if name == "task"]
    assert tasks[::2] == tasks[1::2]
    assert len(set(tasks)) == 3
    assert not {track for name, track in events if name == "call"} & set(tasks)
