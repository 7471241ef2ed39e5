"""The state of this machine and this Python, as far as recording depends on it."""

from __future__ import annotations

import os
import platform
import sys
from contextlib import suppress
from typing import NamedTuple

import stretto
from stretto.base import pid_namespace
from stretto.base.errors import CommandError, StrettoError
from stretto.base.socket_names import consumer_socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SETTINGS = "/proc/sys/kernel"
TRACEFS = ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")
CLOCK_SOURCE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
TRACER_VARIABLES = (
    "COVERAGE_PROCESS_START",
    "DD_SERVICE",
    "NEW_RELIC_CONFIG_FILE",
    "OTEL_TRACES_EXPORTER",
    "PYTHONPERFSUPPORT",
)
"""Variables by which other tracers start in each Python."""


class MachineState(NamedTuple):
    """What `gather` has found. The defaults describe an ordinary machine."""

    python: tuple[int, int] = (3, 12)
    interpreter: str = "cpython"
    free_threaded: bool = False
    system: str = "Linux x86_64"
    native: bool = True
    """Whether the native part is installed."""
    root: bool = False
    memfd_error: str = ""
    shm_free: int | None = 1 << 30
    """Free bytes of /dev/shm; None if it is missing or not writable."""
    seccomp: int = 0
    """The mode of /proc/self/status: 2 is a filter of system calls."""
    reads_memory: bool = True
    """Whether `process_vm_readv` works."""
    ptrace_scope: int | None = 0
    """Yama's setting; None without Yama."""
    perf_event_paranoid: int | None = 2
    gil_waits: str = ""
    """Why waits for the GIL can't be recorded; "" if they can."""
    tracefs: str = "denied"
    """`missing`, `denied` or `readable`."""
    clock_source: str = "tsc"
    descriptors: int = 1024
    """The limit of open files."""
    tracers: tuple[str, ...] = ()
    """What else traces Python here."""
    service: str = ""
    """The version of the running tracing service; "" without one."""
    service_error: str = ""
    data_sources: frozenset[str] = frozenset()
    """What the producers of the service offer."""
    recorded: bool = False
    """Whether `stretto record` records this process."""


def gather() -> MachineState:
    """Return the state of this machine; without the native part, only the state of Python."""
    ordinary = MachineState(
        python=sys.version_info[:2],
        interpreter=sys.implementation.name,
        free_threaded="free-threading" in sys.version,
        system=f"{platform.system()} {platform.machine()}",
        native=stretto.available(),
    )
    return _with_limits(ordinary) if ordinary.native else ordinary


def _with_limits(state: MachineState) -> MachineState:
    service, service_error, sources = _service()
    return state._replace(
        root=os.geteuid() == 0,
        memfd_error=_memfd_error(),
        shm_free=_shm_free(),
        seccomp=int(_status_field("Seccomp") or 0),
        reads_memory=_reads_memory(),
        ptrace_scope=_number(f"{SETTINGS}/yama/ptrace_scope"),
        perf_event_paranoid=_number(f"{SETTINGS}/perf_event_paranoid"),
        gil_waits=_gil_waits(),
        tracefs=_tracefs(),
        clock_source=_text(CLOCK_SOURCE),
        descriptors=_descriptors(),
        tracers=tuple(_tracers(os.environ)),
        service=service,
        service_error=service_error,
        data_sources=sources,
        recorded="STRETTO_RECORD" in os.environ,
    )


def _text(path: str) -> str:
    with suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
        return file.read().strip()
    return ""


def _number(path: str) -> int | None:
    with suppress(ValueError):
        return int(_text(path))
    return None


def _status_field(name: str) -> str:
    lines = _text("/proc/self/status").splitlines()
    return next((line.split()[-1] for line in lines if line.startswith(f"{name}:")), "")


def _memfd_error() -> str:
    from stretto.base.memory import create_sealed_memfd

    try:
        os.close(create_sealed_memfd(4096))
    except StrettoError as error:
        return str(error)
    return ""


def _descriptors() -> int:
    import resource

    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def _shm_free() -> int | None:
    if not os.access("/dev/shm", os.W_OK):
        return None
    found = os.statvfs("/dev/shm")
    return found.f_bavail * found.f_frsize


def _reads_memory() -> bool:
    """Whether this process may read its own memory by `process_vm_readv`."""
    import ctypes

    class Part(ctypes.Structure):
        _fields_ = (("start", ctypes.c_void_p), ("size", ctypes.c_size_t))

    source, target = ctypes.create_string_buffer(b"x", 1), ctypes.create_string_buffer(1)
    parts = [Part(ctypes.addressof(each), 1) for each in (target, source)]
    try:
        read = ctypes.CDLL(None).process_vm_readv
    except (OSError, AttributeError):
        return False
    local, remote = (ctypes.byref(part) for part in parts)
    done: int = read(os.getpid(), local, ctypes.c_ulong(1), remote, ctypes.c_ulong(1), 0)
    return done == 1


def _gil_waits() -> str:
    from stretto import _pyhooks

    return _pyhooks.gil_waits_problem() or ""


def _tracefs() -> str:
    """Return whether tracefs is readable, denied, missing (not mounted), or has "other ids".

    Without tracefs even root can't read the kernel's trace events.
    """
    for folder in TRACEFS:
        if os.path.exists(f"{folder}/trace_pipe"):
            if not pid_namespace.is_initial():
                return "other ids"
            return "readable" if os.access(f"{folder}/trace_pipe", os.R_OK) else "denied"
    # Without permission for the folder, its files seem to be missing.
    return "denied" if any(map(os.path.isdir, TRACEFS)) and os.geteuid() else "missing"


def _tracers(environment: Mapping[str, str]) -> list[str]:
    found = [name for name in TRACER_VARIABLES if environment.get(name)]
    if sys.gettrace() is not None:
        found.append("sys.settrace")
    if sys.getprofile() is not None:
        found.append("sys.setprofile")
    if sys.version_info >= (3, 12):
        tools = (sys.monitoring.get_tool(number) for number in range(6))
        found += [f"sys.monitoring: {tool}" for tool in tools if tool]
    if (pid := _status_field("TracerPid")) not in ("", "0"):
        found.append(f"the debugger with pid {pid}")
    return found


def _service() -> tuple[str, str, frozenset[str]]:
    """Return the service's version, why it can't be asked, and what its producers offer."""
    from stretto.base.selector_task_runner import SelectorTaskRunner
    from stretto.cli.trace.consumer import TraceConsumer

    address = consumer_socket()
    if not address.startswith("@") and not os.path.exists(address):
        return "", "", frozenset()
    runner = SelectorTaskRunner()
    try:
        consumer = TraceConsumer(runner, address)
        state = consumer.service_state()
        consumer.close()
    except (CommandError, StrettoError) as error:
        return "", str(error).removeprefix("trace: ").rstrip("."), frozenset()
    finally:
        runner.close()
    sources = (each.ds_descriptor for each in state.data_sources)
    names = frozenset(source.name for source in sources if source is not None)
    return state.tracing_service_version or "of unknown version", "", names
