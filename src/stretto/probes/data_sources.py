"""The data sources of `stretto probes`."""

from __future__ import annotations

from stretto.probes.ftrace import Ftrace
from stretto.probes.metatrace import Metatrace
from stretto.probes.perf import Perf
from stretto.probes.process_stats import ProcessStats
from stretto.probes.sys_stats import SysStats
from stretto.probes.system_info import SystemInfo

DATA_SOURCES = (Ftrace, Metatrace, Perf, ProcessStats, SysStats, SystemInfo)
