"""Which processes the config of a memory profile names."""

from __future__ import annotations

import os

from stretto.client.track_event.process_name import words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.protos.config import HeapprofdConfig, JavaHprofConfig


def is_selected(config: HeapprofdConfig | JavaHprofConfig) -> bool:
    """Whether this process is among those that the config names; True if it names none."""
    if not config.pid and not config.process_cmdline:
        return True
    names = {os.path.basename(word) for word in words("orig_argv")[:1] + words()[:1]}
    wanted = {os.path.basename(name) for name in config.process_cmdline}
    return os.getpid() in config.pid or bool(names & wanted)
