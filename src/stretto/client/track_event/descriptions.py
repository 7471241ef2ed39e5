"""Registers in the native part what describes this process, its threads and its tasks.

Importing this module makes no connection and starts nothing.
"""

from __future__ import annotations

import os

from stretto import _native
from stretto.client.track_event import process, task_track

process.announce_process()
_native.set_hooks(
    process.announce_process, process.describe_thread, task_track.current_task_track, process.soon
)
# The description of the process is forgotten before any other fork hook can record an event.
os.register_at_fork(after_in_child=_native.after_fork_in_child)
