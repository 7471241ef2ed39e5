"""The workers of bench/track_event.py. Each process measures one library.

    python bench/_workers.py NAME

prints {"operation": nanoseconds of CPU time}. The figure of an operation is the time of a loop
minus the time of an empty loop. Workers that can read their trace count the events in it, so
dropping events gives no advantage.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Body = Callable[[int], object]

EVENTS = 200_000
SLOW_EVENTS = 20_000
REPEATS = 5
PARTS = 10
"""Each run is measured in so many parts: other processes disturb a short part less often."""

Figures = dict[str, float]


def per_event(body: Body, count: int = EVENTS) -> float:
    """Return the CPU time of one event in `body` in ns: the minimum of the parts of several runs.

    A run has `count` events. Each of its parts must have enough events to fill several chunks.
    """

    def empty(count: int) -> None:
        for _ in range(count):
            pass

    best = {body: float("inf"), empty: float("inf")}
    body(count // 20)
    part = count // PARTS
    for _ in range(REPEATS * PARTS):
        for function in best:
            begin = time.thread_time_ns()
            function(part)
            best[function] = min(best[function], (time.thread_time_ns() - begin) / part)
    return best[body] - best[empty]


# --- our library ---


def _instant_bodies(f: Callable[..., None], track: Any, flow: Any) -> dict[str, Body]:
    """Return loops that write instants with different arguments, by name."""

    def plain(count: int) -> None:
        for _ in range(count):
            f("x")

    def two(count: int) -> None:
        for _ in range(count):
            f("x", a=1, b=2)

    def eight(count: int) -> None:
        for _ in range(count):
            f("x", a=1, b=2, c=3, d=4, e=5, f=6, g=7, h=8)

    def on_track(count: int) -> None:
        for _ in range(count):
            f("x", track=track)

    def with_flow(count: int) -> None:
        for _ in range(count):
            f("x", flow=flow)

    return {
        "instant": plain,
        "instant_2_ints": two,
        "instant_8_ints": eight,
        "instant_on_track": on_track,
        "instant_with_flow": with_flow,
    }


def _text_bodies(f: Callable[..., None]) -> dict[str, Body]:
    """Return loops that write instants with different texts, by name."""
    long_string = 200 * "x"

    def string(count: int) -> None:
        for _ in range(count):
            f("x", text=long_string)

    def f_string(count: int) -> None:
        for number in range(count):
            f(f"item {number}")

    return {"instant_200_characters": string, "instant_f_string_name": f_string}


def _other_bodies(category: Any) -> dict[str, Body]:
    """Return loops that write slices and counters or make traced calls, by name."""

    def slice_(count: int) -> None:
        f = category.slice
        for _ in range(count):
            with f("x"):
                pass

    def counter(count: int) -> None:
        f = category.counter
        for _ in range(count):
            f("queue", 3)

    @category.traced  # type: ignore[untyped-decorator]
    def work() -> None:
        """Do nothing."""

    def traced(count: int) -> None:
        for _ in range(count):
            work()

    return {"slice": slice_, "counter": counter, "traced": traced}


def stretto_enabled() -> Figures:
    import asyncio

    import stretto

    category = stretto.Category("bench")
    bodies = _instant_bodies(category.instant, stretto.Track("bench"), stretto.Flow())
    bodies |= _text_bodies(category.instant)
    bodies |= _other_bodies(category)
    instant = bodies["instant"]

    async def in_task() -> float:
        return per_event(instant)

    figures = {}
    for name, body in bodies.items():
        with _checked_recordings(events=2 if name in ("slice", "traced") else 1):
            figures[name] = per_event(body)
    with _checked_recordings():
        figures["instant_in_task"] = asyncio.run(in_task())
    for sessions in (2, 5):
        with _checked_recordings(sessions):
            figures[f"instant_{sessions}_sessions"] = per_event(instant)
    return figures


@contextlib.contextmanager
def _checked_recordings(count: int = 1, events: int = 1) -> Iterator[None]:
    """Record in `count` sessions; exit with an error if events are missing in one of them.

    The buffers are small, so that only the first of the runs gets new memory from the kernel,
    which costs more than the events that it holds. If a buffer is full, the writer sleeps, which
    takes no CPU time.
    """
    import stretto

    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, str(number)) for number in range(count)]
        with contextlib.ExitStack() as stack:
            for path in paths:
                stack.enter_context(stretto.recording(path, stream=True, buffer="16mb"))
            yield
        expected = events * (EVENTS // 20 + REPEATS * EVENTS)
        for path in paths:
            with open(path, "rb") as file:
                found = _count_events(file.read())
            if found != expected:
                raise SystemExit(f"wrote {expected} events, found {found}")


def _count_events(trace: bytes) -> int:
    """Count the packets of a trace in which `sequence_flags` = 2 precedes a track event."""
    return trace.count(b"\x68\x02\x5a")


def stretto_disabled() -> Figures:
    import stretto

    category = stretto.Category("bench")

    def instant(count: int) -> None:
        c = category
        for _ in range(count):
            c.instant("x")

    def empty(count: int) -> None:
        c = category
        for _ in range(count):
            c._empty("x")

    def slice_(count: int) -> None:
        c = category
        for _ in range(count):
            with c.slice("x"):
                pass

    def empty_slice(count: int) -> None:
        c = category
        for _ in range(count):
            with c._empty_slice("x"):
                pass

    def f_string(count: int) -> None:
        for number in range(count):
            f"item {number}"

    return {
        "f_string": per_event(f_string),
        "disabled_instant": per_event(instant),
        "empty": per_event(empty),
        "disabled_slice": per_event(slice_),
        "empty_slice": per_event(empty_slice),
    }


def _work() -> None:
    """Do nothing; calls of this function are traced."""


def _calls(count: int) -> None:
    f = _work
    for _ in range(count):
        f()


def _make_functions(count: int) -> list[Callable[[], None]]:
    """Return `count` functions that are defined at different lines."""
    text = "".join(f"def work_{number}():\n    pass\n" for number in range(count))
    names: dict[str, Any] = {}
    exec(compile(text, __file__, "exec"), names)
    return [names[f"work_{number}"] for number in range(count)]


_FUNCTIONS = _make_functions(100)  # about as many as a small program calls


def _calls_of_100(count: int) -> None:
    functions = _FUNCTIONS
    for _ in range(count // len(functions)):
        for f in functions:
            f()


CALL_BODIES = {"function_call": _calls, "functions_100": _calls_of_100}


def stretto_functions() -> Figures:
    import stretto

    figures: Figures = {}
    expected = 2 * (EVENTS // 20 + REPEATS * EVENTS)
    for name, body in CALL_BODIES.items():
        untraced = per_event(body)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace")
            with stretto.recording(path, stream=True, functions=True, buffer="16mb"):
                traced = per_event(body)
            with open(path, "rb") as file:
                trace = file.read()
        found = _count_events(trace)
        if not expected <= found < expected + 1000:
            raise SystemExit(f"{name}: wrote {expected} events, found {found}")
        figures[name] = traced - untraced
        figures[f"{name}_bytes"] = len(trace) / expected * 2
    return figures


FUNCTIONS_CONFIG = """
buffers { size_kb: 65536 }
compression_type: COMPRESSION_TYPE_DEFLATE
data_sources { config {
  name: "track_event"
  track_event_config { disabled_categories: "*" enabled_categories: "python.functions" }
} }
"""


def stretto_saving() -> Figures:
    """Return the bytes per call, without and with compression, and the ns per call of saving."""
    import stretto

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace")
        with stretto.recording(path, functions=True):
            _calls(EVENTS)
            begin = time.perf_counter_ns()
        saving = time.perf_counter_ns() - begin
        with open(path, "rb") as file:
            trace = file.read()
    found = _count_events(trace)
    if not 2 * EVENTS <= found < 2 * EVENTS + 1000:
        raise SystemExit(f"wrote {2 * EVENTS} events, found {found}")
    with stretto.TracingSession(FUNCTIONS_CONFIG) as session:
        _calls(EVENTS)
        session.stop()
        compressed = session.read()
    return {
        "call_bytes": len(trace) / EVENTS,
        "call_bytes_compressed": len(compressed) / EVENTS,
        "call_saving": saving / EVENTS,
    }


# --- other libraries ---


def viztracer() -> Figures:
    from viztracer import VizTracer

    tracer = VizTracer(tracer_entries=4 * EVENTS, log_sparse=True, verbose=0)
    tracer.start()

    def slice_(count: int) -> None:
        for _ in range(count):
            with tracer.log_event("x"):
                pass

    def instant(count: int) -> None:
        for _ in range(count):
            tracer.log_instant("x")

    figures = {"slice": per_event(slice_, SLOW_EVENTS)}
    tracer.stop()
    tracer.clear()
    tracer = VizTracer(tracer_entries=4 * EVENTS, verbose=0)
    tracer.start()
    figures["instant"] = per_event(instant, SLOW_EVENTS)
    tracer.stop()
    tracer.clear()
    return figures


def viztracer_functions() -> Figures:
    from viztracer import VizTracer

    figures: Figures = {}
    for name, body in CALL_BODIES.items():
        untraced = per_event(body)
        tracer = VizTracer(tracer_entries=(REPEATS + 1) * EVENTS, verbose=0)
        tracer.start()
        figures[name] = per_event(body) - untraced
        tracer.stop()
        tracer.clear()
    return figures


def viztracer_saving() -> Figures:
    from viztracer import VizTracer

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        tracer = VizTracer(tracer_entries=2 * EVENTS, verbose=0, output_file=path)
        tracer.start()
        _calls(EVENTS)
        tracer.stop()
        begin = time.perf_counter_ns()
        tracer.save()
        saving = time.perf_counter_ns() - begin
        size = os.path.getsize(path)
    return {"call_bytes": size / EVENTS, "call_saving": saving / EVENTS}


def perfetto_builder() -> Figures:
    from perfetto.trace_builder.proto_builder import TraceProtoBuilder

    def packet(builder: Any, kind: int) -> Any:
        packet = builder.add_packet()
        packet.timestamp = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        packet.track_event.type = kind
        packet.track_event.track_uuid = 1
        packet.trusted_packet_sequence_id = 1
        return packet

    def instant(count: int) -> None:
        builder = TraceProtoBuilder()
        for _ in range(count):
            packet(builder, 3).track_event.name = "x"
        builder.serialize()

    def slice_(count: int) -> None:
        builder = TraceProtoBuilder()
        for _ in range(count):
            packet(builder, 1).track_event.name = "x"
            packet(builder, 2)
        builder.serialize()

    def arguments(count: int) -> None:
        builder = TraceProtoBuilder()
        for _ in range(count):
            event = packet(builder, 3).track_event
            event.name = "x"
            for name, value in (("a", 1), ("b", 2)):
                annotation = event.debug_annotations.add()
                annotation.name, annotation.int_value = name, value
        builder.serialize()

    return {
        "instant": per_event(instant, SLOW_EVENTS),
        "slice": per_event(slice_, SLOW_EVENTS),
        "instant_2_ints": per_event(arguments, SLOW_EVENTS),
    }


def opentelemetry() -> Figures:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(InMemorySpanExporter()))
    tracer = provider.get_tracer("bench")

    def slice_(count: int) -> None:
        for _ in range(count):
            with tracer.start_as_current_span("x"):
                pass

    return {"slice": per_event(slice_, SLOW_EVENTS // 4)}


def nvtx() -> Figures:
    import nvtx

    def slice_(count: int) -> None:
        for _ in range(count):
            with nvtx.annotate("x"):
                pass

    return {"disabled_slice": per_event(slice_)}


def perfnetto() -> Figures:
    from perfnetto import _perfnetto as sdk

    sdk.init(use_system_backend=False)
    sdk.start(all_threads=False, size_kb=65536, output_path=None)

    def instant(count: int) -> None:
        f = sdk.instant
        for _ in range(count):
            f("x")

    def slice_(count: int) -> None:
        begin, end = sdk.start_region, sdk.end_region
        for _ in range(count):
            begin("x")
            end()

    figures = {"instant": per_event(instant), "slice": per_event(slice_)}
    sdk.stop(read_data=True)
    return figures


WORKERS: dict[str, Callable[[], Figures]] = {
    "stretto": stretto_enabled,
    "stretto_disabled": stretto_disabled,
    "stretto_functions": stretto_functions,
    "stretto_saving": stretto_saving,
    "viztracer": viztracer,
    "viztracer_functions": viztracer_functions,
    "viztracer_saving": viztracer_saving,
    "perfetto_builder": perfetto_builder,
    "opentelemetry": opentelemetry,
    "nvtx": nvtx,
    "perfnetto": perfnetto,
}

if __name__ == "__main__":
    print(json.dumps(WORKERS[sys.argv[1]]()))
