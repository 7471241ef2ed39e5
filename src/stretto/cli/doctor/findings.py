"""What follows from the state of a machine: one function per fact, without side effects."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stretto.base.pid_namespace import OTHER_IDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto.cli.doctor.state import MachineState

OK, LIMITED, MISSING = "ok", "limited", "missing"
DESCRIPTORS = 64
"""A recorder needs some 20 descriptors, and three per recorded process."""
FAST_CLOCKS = ("tsc", "arch_sys_counter")
_WHEELS = (
    "There are wheels for CPython 3.11 to 3.15 on x86-64 and aarch64 Linux; elsewhere on Linux "
    "`pip install stretto --no-binary stretto` builds it with a C compiler"
)
_READS_ONLY = (
    "Recording needs Linux. Traces that were recorded there can be read here, and `stretto --help` "
    "lists the verbs for it"
)


class Finding(NamedTuple):
    """A fact, and what follows from it."""

    level: str
    """`ok`, `limited`, or `missing`: then nothing is recorded."""
    subject: str
    text: str


def native_part(state: MachineState) -> Finding:
    """Return whether this Python can be recorded at all."""
    version = ".".join(map(str, state.python))
    where = f"{state.interpreter} {version} on {state.system}"
    if not state.native:
        return Finding(
            MISSING,
            "native part",
            f"not installed for {where}: programs run, and nothing is recorded. "
            + (_WHEELS if state.system.startswith("Linux") else _READS_ONLY),
        )
    return Finding(OK, "native part", f"installed for {where}")


def python(state: MachineState) -> Finding:
    """Return what the version of Python allows."""
    if state.free_threaded:
        text = "free-threaded: importing stretto enables the GIL; with PYTHON_GIL=0 nothing is "
        return Finding(LIMITED, "python", f"{text}recorded")
    if state.python < (3, 12):
        text = "3.11: recording function calls costs more than on 3.12 and later, also with "
        return Finding(LIMITED, "python", f"{text}`--auto`; `--attach` doesn't work")
    if state.python < (3, 14):
        return Finding(LIMITED, "python", "before 3.14: `stretto record --attach PID` doesn't work")
    return Finding(OK, "python", "all that `stretto record` can do works with this version")


def shared_memory(state: MachineState) -> Finding:
    """Return whether processes can share memory with a recorder."""
    if state.memfd_error:
        text = f"{state.memfd_error}. `stretto record` records nothing; a program can record "
        return Finding(MISSING, "memfd", f"{text}itself by `stretto.recording(path)`")
    return Finding(OK, "memfd", "processes can share memory with the recorder")


def dev_shm(state: MachineState) -> Finding:
    """Return the state of /dev/shm. Stretto doesn't use it, but a recorded program may."""
    unused = "Stretto doesn't use it (its memory is a memfd)"
    if state.shm_free is None:
        text = f"missing or not writable: {unused}; multiprocessing's shared memory needs it"
        return Finding(OK, "/dev/shm", text)
    return Finding(OK, "/dev/shm", f"{state.shm_free >> 20} MiB free; {unused}")


def seccomp(state: MachineState) -> Finding:
    """Return what a filter of system calls forbids."""
    if not state.reads_memory:
        cause = "seccomp forbids" if state.seccomp else "the kernel lacks or forbids"
        text = f"{cause} process_vm_readv: `--auto` takes no samples of the stacks, so the same "
        return Finding(LIMITED, "seccomp", f"{text}trace costs more")
    filtered = "a filter is active, and allows" if state.seccomp else "no filter:"
    return Finding(OK, "seccomp", f"{filtered} the system calls of recording")


def ptrace(state: MachineState) -> Finding:
    """Return which running programs a recorder can attach to."""
    scope = state.ptrace_scope or 0
    if scope == 3 or (scope == 2 and not state.root):
        who = "no process may attach until the next boot" if scope == 3 else "only root may attach"
        return Finding(LIMITED, "ptrace", f"kernel.yama.ptrace_scope is {scope}: {who}")
    if scope == 1 and not state.root:
        text = "kernel.yama.ptrace_scope is 1: `--attach` is refused. Root allows it by "
        return Finding(LIMITED, "ptrace", f"{text}`sysctl kernel.yama.ptrace_scope=0`")
    whose = "all users" if state.root else "this user"
    return Finding(OK, "ptrace", f"`--attach` may attach to processes of {whose}")


def perf_events(state: MachineState) -> Finding:
    """Return whether `linux.perf` of `stretto probes` can sample what runs on each CPU."""
    if state.perf_event_paranoid is None:
        text = "this kernel has none: no `linux.perf`; `stretto record` needs none"
        return Finding(LIMITED, "perf events", text)
    if state.perf_event_paranoid > 0 and not state.root:
        text = f"kernel.perf_event_paranoid is {state.perf_event_paranoid}: `linux.perf` of "
        text += "`stretto probes` needs root, CAP_PERFMON or 0; `stretto record` needs none"
        return Finding(LIMITED, "perf events", text)
    return Finding(OK, "perf events", "allowed, for `linux.perf` of `stretto probes`")


def gil_waits(state: MachineState) -> Finding:
    """Return whether waits for the GIL can be recorded."""
    if state.gil_waits:
        text = f"{state.gil_waits}: `--gil-waits` records none; hand-overs of the GIL are counted"
        return Finding(LIMITED, "GIL waits", text)
    return Finding(OK, "GIL waits", "`stretto record --gil-waits` records each")


def tracefs(state: MachineState) -> Finding:
    """Return whether the kernel's scheduling and system calls can be recorded."""
    if state.tracefs == "readable":
        return Finding(OK, "tracefs", "readable, for --sched, --io-waits and `stretto probes`")
    if state.tracefs == "other ids":
        return Finding(LIMITED, "tracefs", f"{OTHER_IDS}: no --sched, and no system calls")
    why = "not mounted" if state.tracefs == "missing" else "readable by root only"
    text = f"{why}: no --sched, and no `linux.ftrace` of `stretto probes`; the rest is recorded"
    return Finding(LIMITED, "tracefs", text)


def clock(state: MachineState) -> Finding:
    """Return what reading the clock costs."""
    if state.clock_source in FAST_CLOCKS:
        return Finding(OK, "clock", f"{state.clock_source}: events read the processor's counter")
    name = state.clock_source or "unknown"
    return Finding(LIMITED, "clock", f"{name}: each event costs some 12 ns more than with tsc")


def descriptors(state: MachineState) -> Finding:
    """Return whether the limit of open files suffices."""
    if 0 <= state.descriptors < DESCRIPTORS:
        text = f"{state.descriptors} are allowed: too few to record several processes (`ulimit -n`)"
        return Finding(LIMITED, "open files", text)
    return Finding(OK, "open files", "the limit suffices")


def other_tracers(state: MachineState) -> Finding:
    """Return which other tracers of Python programs are active."""
    if state.recorded:
        text = "`stretto record` records this process: a second recorder takes over its children"
        return Finding(LIMITED, "other tracers", text)
    if state.tracers:
        text = f"{', '.join(state.tracers)}: both work, and their cost is in the trace, too. On "
        text += "3.11 a program that replaces the profile function ends the recording of calls"
        return Finding(LIMITED, "other tracers", text)
    return Finding(OK, "other tracers", "none found")


def service(state: MachineState) -> Finding:
    """Return whether a tracing service runs, for `--system` and `stretto trace`."""
    if state.service_error:
        return Finding(LIMITED, "service", state.service_error)
    if not state.service:
        text = "none runs: `stretto traced --background` starts one. `stretto record` without "
        return Finding(OK, "service", f"{text}`--system` needs none")
    offered = ", ".join(sorted(state.data_sources)) or "nothing"
    return Finding(OK, "service", f"{state.service}; its producers offer {offered}")


FACTS: tuple[Callable[[MachineState], Finding], ...] = (
    native_part,
    python,
    shared_memory,
    dev_shm,
    seccomp,
    ptrace,
    perf_events,
    gil_waits,
    tracefs,
    clock,
    descriptors,
    other_tracers,
    service,
)


def findings(state: MachineState) -> list[Finding]:
    """Return a finding per fact. If the native part is missing, return only that finding."""
    return [fact(state) for fact in (FACTS if state.native else FACTS[:1])]
