"""A client process that connects to its parent, or exits before it has connected."""

from __future__ import annotations

import os
import select
import subprocess

from stretto_fidl.bindings import ChannelEnd
from stretto_fidl.transport import Listener


def accept_from(listener: Listener, child: subprocess.Popen[bytes]) -> ChannelEnd:
    """Return the channel to a child process.

    The test fails if the child exits without connecting.
    """
    ended = os.pidfd_open(child.pid)
    try:
        ready, _, _ = select.select([listener, ended], [], [])
    finally:
        os.close(ended)
    assert listener in ready, f"the client ended with {child.wait()} before it connected"
    return listener.accept()
