"""What a session's PerfEventConfig asks of the kernel.

    PerfEventConfig ──> PerfSettings: rows of events for `PerfSampler.open`, limits, and the
                        PerfSampleDefaults that the trace has

Unset fields have the defaults of Perfetto's `traced_perf`: 10 samples per second by `cpu-clock`,
rings of 256 pages, read every 100 ms, the clock CLOCK_MONOTONIC_RAW; stacks of programs are unwound
by the tables of their files (UNWIND_DWARF). Such samples hold up to 64 KiB of a stack, so with many
per second the rings are larger.
"""

from __future__ import annotations

import re
import time
from typing import NamedTuple

from stretto.base.errors import StrettoError
from stretto.probes.tracefs import Tracefs, TracefsError
from stretto.protos.config import FollowerEvent, PerfEventConfig, PerfEvents
from stretto.protos.trace import PerfSampleDefaults

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.probes.machine import Machine

    Event = PerfEvents.Timebase | FollowerEvent
    Row = tuple[int, int, int, int, int, str | None]

HARDWARE, SOFTWARE, TRACEPOINT = 0, 1, 2
"""Types of perf_event_attr."""
FREQUENCY_HZ, RING_PAGES, READ_PERIOD_MS = 10, 256, 100
MAX_CHOSEN_RING_PAGES, SAMPLE_PAGES = 1 << 11, 16
"""The largest ring unless a config asks for more; the size of a sample with a stack."""
MAX_RING_PAGES, MIN_PERIOD_MS, MAX_PERIOD_MS = 1 << 14, 1, 60_000
PAGE_BYTES, LEAST_RECORD = 4096, 8
BOOTTIME = 6
CLOCKS = {
    PerfEvents.PERF_CLOCK_REALTIME: (time.CLOCK_REALTIME, 1),
    PerfEvents.PERF_CLOCK_MONOTONIC: (time.CLOCK_MONOTONIC, 3),
    PerfEvents.PERF_CLOCK_MONOTONIC_RAW: (time.CLOCK_MONOTONIC_RAW, 5),
    PerfEvents.PERF_CLOCK_BOOTTIME: (time.CLOCK_BOOTTIME, BOOTTIME),
}
"""The kernel's and the trace's numbers of each clock."""
SOFTWARE_COUNTERS = {
    PerfEvents.SW_CPU_CLOCK: 0,
    PerfEvents.SW_TASK_CLOCK: 1,
    PerfEvents.SW_PAGE_FAULTS: 2,
    PerfEvents.SW_CONTEXT_SWITCHES: 3,
    PerfEvents.SW_CPU_MIGRATIONS: 4,
    PerfEvents.SW_PAGE_FAULTS_MIN: 5,
    PerfEvents.SW_PAGE_FAULTS_MAJ: 6,
    PerfEvents.SW_ALIGNMENT_FAULTS: 7,
    PerfEvents.SW_EMULATION_FAULTS: 8,
    PerfEvents.SW_DUMMY: 9,
}
HARDWARE_COUNTERS = range(PerfEvents.HW_CPU_CYCLES, PerfEvents.HW_REF_CPU_CYCLES + 1)
"""In the order of the kernel's numbers, which begin at 0."""
MODIFIERS = (
    (PerfEvents.EVENT_MODIFIER_COUNT_USERSPACE, 1),
    (PerfEvents.EVENT_MODIFIER_COUNT_KERNEL, 2),
    (PerfEvents.EVENT_MODIFIER_COUNT_HYPERVISOR, 4),
)
"""Each modifier, and what an event without it excludes if it has others."""
_MOST_SAMPLES = (1 << 32) - 1
_DWARF = (PerfEventConfig.UNWIND_UNKNOWN, PerfEventConfig.UNWIND_DWARF)
_TRACEPOINT = re.compile(r"([A-Za-z0-9_-]+)[/:]([A-Za-z0-9_-]+)")


class PerfError(StrettoError):
    """`linux.perf` can't record; the message says why, and what to do."""


class PerfSettings(NamedTuple):
    """The settings of a session."""

    events: tuple[Row, ...]
    """The event that takes samples, then its followers."""
    frequency: int
    period: int
    clock: int
    """The clock of the samples' timestamps, as the kernel numbers it."""
    trace_clock: int
    """The same clock as a BuiltinClock."""
    is_polled: bool
    """Whether counters are read periodically, without samples."""
    has_stacks: bool
    kernel_frames: bool
    user_frames: bool
    user_stack: bool
    """Whether frames of programs are unwound, instead of found by frame pointers."""
    ring_pages: int
    read_period_ms: int
    max_samples: int
    """The most samples of a CPU in `read_period_ms`."""
    defaults: PerfSampleDefaults


def settings_of(config: PerfEventConfig, machine: Machine) -> PerfSettings:
    """Return the settings of a session.

    Raises:
        PerfError: The config can't be followed.
    """
    timebase = config.timebase or PerfEvents.Timebase()
    is_polled = timebase.poll_period_ms > 0
    period = 0 if is_polled else timebase.period
    frequency = 0 if is_polled or period else _frequency(config, timebase)
    stacks = config.callstack_sampling
    has_stacks = not is_polled and (stacks is not None or config.all_cpus)
    kernel_frames = has_stacks and (config.kernel_frames or bool(stacks and stacks.kernel_frames))
    unwinding = stacks.user_frames if stacks else PerfEventConfig.UNWIND_UNKNOWN
    user_frames = has_stacks and unwinding != PerfEventConfig.UNWIND_SKIP
    user_stack = user_frames and unwinding in _DWARF
    if has_stacks and not kernel_frames and not user_frames:
        raise PerfError("callstack_sampling asks for neither kernel_frames nor user_frames")
    read_ms = timebase.poll_period_ms or config.ring_buffer_read_period_ms or READ_PERIOD_MS
    read_ms = min(max(read_ms, MIN_PERIOD_MS), MAX_PERIOD_MS)
    samples = min(2 * (1 + frequency * read_ms // 1000), _MOST_SAMPLES)
    pages = _ring_pages(config.ring_buffer_pages, samples if user_stack else 0)
    clock, trace_clock = CLOCKS.get(timebase.timestamp_clock, CLOCKS[3])
    events: list[Event] = [timebase, *config.followers]
    settings = PerfSettings(
        events=tuple(_row(event, machine) for event in events),
        frequency=frequency,
        period=period,
        clock=clock,
        trace_clock=BOOTTIME if is_polled else trace_clock,
        is_polled=is_polled,
        has_stacks=has_stacks,
        kernel_frames=kernel_frames,
        user_frames=user_frames,
        user_stack=user_stack,
        ring_pages=0 if is_polled else pages,
        read_period_ms=read_ms,
        max_samples=samples if frequency else pages * PAGE_BYTES // LEAST_RECORD,
        defaults=PerfSampleDefaults(),
    )
    settings.defaults.timebase = _written_timebase(timebase, settings)
    settings.defaults.followers = list(config.followers)
    return settings


def _frequency(config: PerfEventConfig, timebase: PerfEvents.Timebase) -> int:
    return timebase.frequency or config.sampling_frequency or FREQUENCY_HZ


def _ring_pages(pages: int, stacks: int) -> int:
    """Return the pages of a ring: those of the config, or enough for a number of stacks."""
    if pages & (pages - 1) or pages > MAX_RING_PAGES:
        raise PerfError(
            f"ring_buffer_pages is {pages}: it must be a power of two, at most {MAX_RING_PAGES}"
        )
    if pages:
        return pages
    enough = 1 << (SAMPLE_PAGES * stacks).bit_length()
    return min(max(enough, RING_PAGES), MAX_CHOSEN_RING_PAGES)


def _written_timebase(asked: PerfEvents.Timebase, settings: PerfSettings) -> PerfEvents.Timebase:
    """Return the timebase with what was chosen for unset fields."""
    timebase = PerfEvents.Timebase.decode(asked.encode())
    if settings.is_polled:
        timebase.poll_period_ms = settings.read_period_ms
    elif settings.frequency:
        timebase.frequency = settings.frequency
    if not any(timebase.has(name) for name in ("counter", "tracepoint", "raw_event")):
        timebase.counter = PerfEvents.SW_CPU_CLOCK
    return timebase


# --- Events


def _row(event: Event, machine: Machine) -> Row:
    """Return an event as `PerfSampler.open` takes it."""
    given = set(event.modifiers)
    excluded = sum(bit for modifier, bit in MODIFIERS if given and modifier not in given)
    if event.tracepoint is not None:
        number = _tracepoint_id(event.tracepoint.name, machine)
        return (TRACEPOINT, number, 0, 0, excluded, event.tracepoint.filter or None)
    if event.raw_event is not None:
        raw = event.raw_event
        kind = _pmu_type(raw.pmu_name, machine) if raw.pmu_name else raw.type
        return (kind, raw.config, raw.config1, raw.config2, excluded, None)
    return (*_counter(event.counter or PerfEvents.SW_CPU_CLOCK), 0, 0, excluded, None)


def _counter(counter: int) -> tuple[int, int]:
    """Return the type and number of a counter."""
    if counter in HARDWARE_COUNTERS:
        return HARDWARE, counter - PerfEvents.HW_CPU_CYCLES
    if counter not in SOFTWARE_COUNTERS:
        raise PerfError(f"there is no counter {counter}")
    return SOFTWARE, SOFTWARE_COUNTERS[counter]


def _tracepoint_id(name: str, machine: Machine) -> int:
    found = _TRACEPOINT.fullmatch(name)
    if not found:
        raise PerfError(f"tracepoint {name!r} is not `group/name` or `group:name`")
    try:
        text = Tracefs(machine.path("")).read(f"events/{found[1]}/{found[2]}/id").strip()
    except TracefsError as error:
        raise PerfError(f"tracepoint {name}: {error}") from None
    if not text.isdecimal():
        raise PerfError(f"the kernel has no tracepoint {name}")
    return int(text)


def _pmu_type(name: str, machine: Machine) -> int:
    text = b""
    if re.fullmatch(r"\w+", name):
        text = machine.read(f"sys/bus/event_source/devices/{name}/type").strip()
    if not text.isdigit():
        raise PerfError(f"this machine has no counters (pmu) named {name!r}")
    return int(text)
