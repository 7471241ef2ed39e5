"""The verb `probes`."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

from stretto.base.socket_names import producer_socket
from stretto.cli.background import daemonize
from stretto.cli.verb_parser import VerbParser, flag

if TYPE_CHECKING:
    from collections.abc import Sequence

PRODUCER = "stretto.probes"
CONNECTION_TIMEOUT_S = 5.0
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

DESCRIPTION = """\
Record this machine beside its programs: a producer with Perfetto's data sources for Linux.

  stretto traced --background                             the tracing service
  stretto probes --background                             the machine's data sources
  stretto trace -c config.pbtxt --txt -o out.pftrace      a session

A session starts a data source that its config names, and only then are files read:

  linux.ftrace           events of the kernel: scheduling, wake-ups, interrupts, system calls
  linux.perf             what runs on each CPU, with its stack; counters of the kernel
  linux.process_stats    processes and threads: names, memory, CPU time, open files
  linux.sys_stats        memory, CPU times, interrupts, frequencies, disks, pressure
  linux.system_info      the CPUs, and the names of interrupts
  perfetto.metatrace     how long the work of these data sources takes

  data_sources { config {
    name: "linux.sys_stats"
    sys_stats_config { meminfo_period_ms: 1000 stat_period_ms: 250 psi_period_ms: 250 }
  } }
  data_sources { config {
    name: "linux.process_stats"
    process_stats_config { scan_all_processes_on_start: true proc_stats_poll_ms: 1000 }
  } }

The service may start later, or again: the connection is retried. Only linux.ftrace and linux.perf
need root; the first one, and tracepoints of the second, also tracefs (mount -t tracefs nodev
/sys/kernel/tracing). Files that only root may read are left out
(/proc/slabinfo, open files of other users' processes).
"""

EPILOG = """\
The service's address is in PERFETTO_PRODUCER_SOCK_NAME, as for all producers. docs/probes.md
describes each data source. If Perfetto's traced_probes runs, too, a session starts both.
"""


def run(arguments: Sequence[str]) -> int:
    """Run `stretto probes` until a signal; with --background, until the probes run in a child."""
    parser = VerbParser("probes", DESCRIPTION, epilog=EPILOG)
    flag(
        parser,
        "--background",
        "run in the background; print the pid, and return when the data sources are registered, "
        "or the service isn't there",
    )
    background: bool = parser.parse_args(list(arguments)).background
    # Imported before the fork, so that an import error is printed on the terminal.
    from stretto.backends.always_on import AlwaysOnBackend
    from stretto.backends.runner_thread import RunnerThread
    from stretto.client.producer_connection import ProducerConnection
    from stretto.probes.data_sources import DATA_SOURCES
    from stretto.probes.machine import Machine
    from stretto.probes.probe import Probe

    on_ready = daemonize() if background else None
    # A signal ignored by the parent (nohup, a shell's `&`) remains ignored.
    signals = {each for each in SIGNALS if signal.getsignal(each) is not signal.SIG_IGN}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)  # Threads that start later inherit this.
    thread = RunnerThread()
    Probe.machine = Machine(thread.runner, thread.call, tell=_tell)
    address = producer_socket()
    backend = AlwaysOnBackend(address, PRODUCER)
    backend.connect_producer(ProducerConnection(DATA_SOURCES))
    backend.wait(CONNECTION_TIMEOUT_S)
    _tell(f"retrying: {backend.problem}" if backend.problem else f"connected to {address}")
    if on_ready is not None:
        on_ready(0)
    signal.sigwait(signals)
    backend.close()
    thread.stop()
    thread.abandon()
    return 0


def _tell(message: str) -> None:
    print(f"stretto probes: {message}", file=sys.stderr, flush=True)
