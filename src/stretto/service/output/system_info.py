"""The description of the service's machine for a trace (SystemInfo)."""

from __future__ import annotations

import os
import time


class SystemInfo:
    """The description of the service's machine, from what an unprivileged process can read."""

    def __init__(self) -> None:
        system = os.uname()
        self.sysname = system.sysname
        self.version = system.version
        self.machine = system.machine
        self.release = system.release
        self.timezone_minutes = time.localtime().tm_gmtoff // 60
        self.page_size = os.sysconf("SC_PAGE_SIZE")
        self.ram_bytes = os.sysconf("SC_PHYS_PAGES") * self.page_size
        self.cpus = os.sysconf("SC_NPROCESSORS_CONF")
