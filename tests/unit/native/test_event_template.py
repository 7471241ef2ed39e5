"""Event templates record the same events as the methods of their category."""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import Any

import pytest

import stretto
from stretto import _native
from tests.support.recorded_events import BEGIN, END, INSTANT, Event, config, events_of, record

CATEGORY = stretto.Category("test.template")
CONSTANTS = {"role": "send", "ordinal": 1 << 40, "share": 0.5, "last": True, "name": "x", "args": 1}


def echo() -> Any:
    return CATEGORY.template("Echo", "txid", "bytes", "handles", args=CONSTANTS, kind="one-way")


def comparable(event: Event) -> tuple[Any, ...]:
    return (
        event.kind, event.name, event.category, event.args, event.track,
        event.flows, event.terminating_flows,
    )  # fmt: skip


VALUES: list[tuple[Any, ...]] = [
    (),
    (1,),
    (1, 2, 3),
    (-1, 1.5, True),
    (1 << 62, -(1 << 63), "text"),
    (1, None, None),
    (None, None, 3),
    (None, 2),
    (1 << 64, b"bytes", [1, {"a": None}]),
    ("x" * 60, "y" * 200, "z" * 5000),
]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"flow": 7},
    {"flow": stretto.Flow(1 << 63), "terminating_flow": -1},
    {"flow": [1, 2], "terminating_flow": [stretto.Flow(3)]},
    {"track": stretto.Track("elsewhere")},
    {"flow": None, "terminating_flow": None, "track": None, "timestamp": None},
]


@pytest.mark.parametrize("values", VALUES, ids=repr)
@pytest.mark.parametrize("options", OPTIONS, ids=repr)
def test_template_records_the_same_events_as_its_category(values: Any, options: Any) -> None:
    template = echo()
    arguments = dict(
        {
            name: value
            for name, value in zip(("txid", "bytes", "handles"), values, strict=False)
            if value is not None
        },
        kind="one-way",
        args=CONSTANTS,
        **options,
    )
    with record() as recorded:
        CATEGORY.instant("Echo", **arguments)
        for _ in range(3):  # The first event also writes the interned names.
            template.instant(*values, **options)
        with CATEGORY.slice("Echo", **arguments):
            pass
        for _ in range(2):
            with template.slice(*values, **options):
                pass
        with template.instant_at_entry(*values, **options):
            pass
    events = recorded.events
    assert recorded.kinds == "IIIIBEBEBEI"
    for each in (*events[1:4], events[-1]):
        assert comparable(each) == comparable(events[0])
    for begin, end in zip(events[6::2], events[7::2], strict=False):
        assert comparable(begin) == comparable(events[4])
        assert (end.kind, end.track) == (END, events[5].track)
    times = [event.timestamp for event in events]
    assert times == sorted(times)


def test_explicit_timestamps_are_kept_in_any_order() -> None:
    template, now = echo(), stretto.now()
    draw = random.Random(3)
    given = [now + draw.randrange(-1000, 1000) * 1000 for _ in range(50)]
    given += [0, 2**63 - 1, now]
    with record() as recorded:
        for time in given:
            template.instant(1, timestamp=time)
            CATEGORY.instant("between")
    events = recorded.events
    assert [event.timestamp for event in events[::2]] == given
    between = [event.timestamp for event in events[1::2]]
    assert between == sorted(between)
    assert now < between[0] < between[-1] < stretto.now()


def test_explicit_timestamp_in_the_past_does_not_change_other_timestamps() -> None:
    template = echo()
    with record() as recorded:
        template.instant(0)
        for number in range(200):
            stamp = stretto.now()
            CATEGORY.instant("later", n=number)
            template.instant(number, timestamp=stamp)
    stamps = [event.timestamp for event in recorded.events if event.name == "Echo"][1:]
    others = [event.timestamp for event in recorded.events if event.name == "later"]
    assert all(stamp <= other for stamp, other in zip(stamps, others, strict=True))
    assert others == sorted(others)


def test_many_events_of_many_templates_fill_many_chunks() -> None:
    templates = [
        CATEGORY.template(f"event {n}", "number", filler="f" * (n % 90)) for n in range(400)
    ]
    with record() as recorded:
        for number in range(2000):
            templates[number * number % 400].instant(number, flow=number + 1)
    assert [event.args["number"] for event in recorded.events] == list(range(2000))
    assert [event.name for event in recorded.events] == [
        f"event {n * n % 400}" for n in range(2000)
    ]
    assert [event.flows for event in recorded.events] == [[n + 1] for n in range(2000)]


def test_constants_larger_than_a_chunk_are_recorded() -> None:
    long = {f"argument {n}": "v" * 100 for n in range(20)}
    template = CATEGORY.template("long", "n", args=long)
    with record() as recorded:
        for n in range(3):
            template.instant(n)
    assert [event.args for event in recorded.events] == [{"n": n, **long} for n in range(3)]


def test_several_sessions_get_every_event() -> None:
    template = echo()
    with record() as one:
        template.instant(1)
        with record() as other:
            template.instant(2)
            with template.slice(3):
                pass
        template.instant(4)
    assert [event.args.get("txid") for event in one.events] == [1, 2, 3, None, 4]
    assert [event.args.get("txid") for event in other.events] == [2, 3, None]


def test_filtered_debug_annotations_are_not_recorded() -> None:
    made = config()
    made.data_sources[0].config.track_event_config.filter_debug_annotations = True
    template = echo()
    with stretto.TracingSession(made) as session:
        for _ in range(2):
            template.instant(1)
        session.stop()
        trace = session.read()
    assert [(event.name, event.args) for event in events_of(trace)] == [("Echo", {})] * 2
    assert b"one-way" not in trace


def test_template_records_nothing_without_a_session() -> None:
    template = echo()
    assert template.instant(1, nonsense=2) is None
    assert template.slice(1) is template.instant_at_entry(1) is _native.EMPTY_SLICE


def test_slice_created_before_the_session_ended_records_nothing_in_another_session() -> None:
    template = echo()
    with record():
        prepared = template.slice(1)
    with record(enabled=["test.other"], disabled=["*"]) as recorded, prepared:
        pass
    assert recorded.events == []


def test_template_events_of_a_task_are_on_the_track_of_the_task() -> None:
    template = echo()

    async def one(number: int) -> None:
        for _ in range(3):
            with template.slice(number):
                await asyncio.sleep(0)
            template.instant(number)

    async def main() -> None:
        await asyncio.gather(*(one(number) for number in range(4)))

    with record() as recorded:
        asyncio.run(main())
    tracks: dict[int, set[int]] = {}
    open_at: dict[int, int] = {}
    for event in recorded.events:
        if event.kind in (BEGIN, INSTANT):
            tracks.setdefault(event.track, set()).add(event.args["txid"])
        if event.kind in (BEGIN, END):
            open_at[event.track] = open_at.get(event.track, 0) + (1 if event.kind == BEGIN else -1)
            assert open_at[event.track] in (0, 1)
    assert sorted(map(sorted, tracks.values())) == [[0], [1], [2], [3]]


def test_tasks_at_the_same_address_have_different_tracks() -> None:
    """The program has more tasks than the cache holds, some consecutive and some simultaneous."""
    template = echo()

    async def one(number: int) -> None:
        for _ in range(2):
            template.instant(number)
            await asyncio.sleep(0)

    async def main() -> None:
        for number in range(100):
            await asyncio.create_task(one(number))
        await asyncio.gather(*(one(number) for number in range(100, 300)))

    with record() as recorded:
        asyncio.run(main())
    tracks: dict[int, set[int]] = {}
    for event in recorded.events:
        tracks.setdefault(event.track, set()).add(event.args["txid"])
    assert sorted(map(sorted, tracks.values())) == [[number] for number in range(300)]


class Changing:
    """An object whose `__str__` returns another text at each call."""

    count = 0

    def __str__(self) -> str:
        assert stretto.in_event()
        Changing.count += 1
        return f"text {Changing.count}"


def test_template_constants_are_converted_once() -> None:
    Changing.count = 0
    template = CATEGORY.template("x", what=Changing(), large=1 << 64)
    assert not stretto.in_event()
    with record() as recorded:
        for _ in range(2):
            template.instant()
    assert [event.args for event in recorded.events] == 2 * [
        {"what": "text 1", "large": str(1 << 64)}
    ]


def test_constant_whose_str_raises_is_recorded_as_a_question_mark() -> None:
    class Broken:
        def __str__(self) -> str:
            raise ValueError("broken")

    template = CATEGORY.template("x", what=Broken())
    with record() as recorded:
        template.instant()
    assert recorded.event.args == {"what": "?"}


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: CATEGORY.template(), TypeError),  # type: ignore[call-arg]
        (lambda: CATEGORY.template(5), TypeError),  # type: ignore[arg-type]
        (lambda: CATEGORY.template("x", 5), TypeError),  # type: ignore[arg-type]
        (lambda: CATEGORY.template("x", *"abcdefg"), ValueError),
        (lambda: CATEGORY.template("x", flow=5), TypeError),
        (lambda: CATEGORY.template("x", args=5), TypeError),  # type: ignore[arg-type]
        (lambda: CATEGORY.template("x", args={5: 5}), TypeError),  # type: ignore[dict-item]
    ],
)
def test_invalid_template_arguments_are_refused(
    make: Callable[[], object], error: type[Exception]
) -> None:
    with pytest.raises(error):
        make()


@pytest.mark.parametrize("raises", [False, True])
def test_invalid_event_arguments_are_counted_or_raise_an_error(raises: bool) -> None:
    template = echo()
    calls = [
        lambda: template.instant(1, 2, 3, 4),
        lambda: template.instant(1, nonsense=2),
        lambda: template.instant(1, args={}),
        lambda: template.instant(1, timestamp=1.5),
        lambda: template.slice(1, within=5).__enter__(),
    ]
    before = _native.raise_on_event_misuse(raises)
    try:
        with record() as recorded:
            for call in calls:
                if raises:
                    with pytest.raises((TypeError, ValueError)):
                        call()
                else:
                    call()
    finally:
        _native.raise_on_event_misuse(before)
    marks = [event.args.get("...") for event in recorded.events]
    expected = ["[left out: positional arguments]", None, None, "[left out: timestamp]", None]
    assert marks == ([] if raises else expected)


def test_deleted_templates_leak_no_objects() -> None:
    class Text(str):
        __slots__ = ("__weakref__",)

    with record():  # loads the modules that a session needs
        pass
    before = len(gc.get_objects())
    with record():
        for n in range(1000):
            CATEGORY.template(f"name {n}", "n", text=Text("t")).instant(n)
    gc.collect()
    assert len(gc.get_objects()) < before + 500


class Nested:
    """An argument whose repr records an event of a template."""

    def __init__(self, template: Any) -> None:
        self._template = template

    def __repr__(self) -> str:
        assert stretto.in_event()
        self._template.instant(2)
        return "nested"


def test_template_events_inside_of_another_event_are_not_recorded() -> None:
    template = echo()
    with record() as recorded:
        template.instant(0)
        template.instant(Nested(template))
        CATEGORY.instant("x", n=Nested(template))
        template.instant(1)
    values = [event.args.get("txid", event.args.get("n")) for event in recorded.events]
    assert values == [0, "nested", "nested", 1]
    assert not stretto.in_event()


VARIABLE: ContextVar[int] = ContextVar("variable", default=0)


def test_slice_sets_a_context_variable_within_its_block() -> None:
    template = echo()
    with record() as recorded:
        outer, inner = (template.slice(n, within=(VARIABLE, n)) for n in (1, 2))
        with outer, template.instant_at_entry(3, within=(VARIABLE, 3)):
            assert VARIABLE.get() == 3
            with inner:
                assert VARIABLE.get() == 2
                with inner:
                    assert VARIABLE.get() == 2
                assert VARIABLE.get() == 2
            assert VARIABLE.get() == 3
        assert VARIABLE.get() == 0
    assert recorded.kinds == "BIBBEEE"


def test_slice_ended_in_another_context_does_not_reset_its_context_variable() -> None:
    template = echo()
    with record() as recorded:
        entered = template.slice(1, within=(VARIABLE, 1))
        copy_context().run(entered.__enter__)
        VARIABLE.set(7)
        entered.__exit__(None, None, None)
        assert VARIABLE.get() == 7
        VARIABLE.set(0)
    assert recorded.kinds == "BE"


def test_native_and_pure_flow_ids_are_equal() -> None:
    from stretto.client import pure
    from stretto.flows.mixing import stream

    draw = random.Random(1)
    for _ in range(1000):
        key, index = draw.getrandbits(64), draw.getrandbits(64)
        assert stretto.flow_id(key, index) == pure.flow_id(key, index) == stream(key, index)
    assert stretto.flow_id(0, 1) == 0xE220A8397B1DCDAF
    for wrong in ((), (1,), (1.5, 2), ("a", 1)):
        with pytest.raises(TypeError):
            stretto.flow_id(*wrong)  # type: ignore[arg-type]
