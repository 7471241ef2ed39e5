"""For random programs, the tables of Perfetto's trace processor equal a simple model."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import HealthCheck, given, settings

import stretto
from stretto.client.recording import recording_config
from tests.support.examples import examples
from tests.support.random_programs import CATEGORIES, Program, programs

EVENTS = """
select extract_arg(s.arg_set_id, 'debug.seq'), s.id, s.name, s.category,
       (select extract_arg(p.arg_set_id, 'debug.seq') from slice p where p.id = s.parent_id),
       coalesce(track.name, thread.name), s.dur, s.arg_set_id
from slice s join track on s.track_id = track.id
left join thread_track on thread_track.id = s.track_id left join thread using (utid)
"""
ARGUMENTS = """
select arg_set_id, key, coalesce(string_value, int_value, real_value)
from args where key glob 'debug.*'
"""
COUNTERS = """
select t.name, c.value from counter c join counter_track t on c.track_id = t.id order by c.ts
"""


def record(program, *, stream=False):
    """Run a program in a session; return (expected events, trace)."""
    config = recording_config(buffer_bytes=4 << 20)
    with stretto.TracingSession(config) as session:
        expected = program.run()
        session.stop()
        return expected, session.read()


def found_events(trace):
    arguments = {}
    for arg_set, key, value in trace.query(ARGUMENTS):
        arguments.setdefault(arg_set, {})[key] = value
    events, durations, ids = {}, [], {}
    for seq, ident, name, category, parent, where, duration, arg_set in trace.query(EVENTS):
        assert seq not in events, "an event twice"
        events[seq] = (name, category, parent, where, arguments[arg_set])
        durations.append(duration)
        ids[ident] = seq
    assert all(duration >= 0 for duration in durations), "a slice was left open"
    return events, ids


def arrows(flows):
    """Return the pairs (from, to) of successive events of all flows."""
    return sorted(pair for hops in flows.values() for pair in pairwise(hops))


def check(expected, trace):
    assert trace.errors() == []
    events, ids = found_events(trace)
    assert events == expected.events
    counters = {name: [] for name in expected.counters}
    for name, value in trace.query(COUNTERS):
        counters[name].append(value)
    assert counters == expected.counters
    found = [
        (ids[out], ids[into]) for out, into in trace.query("select slice_out, slice_in from flow")
    ]
    assert sorted(found) == arrows(expected.flows)


@settings(
    max_examples=examples(40),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(source=programs)
def test_trace_of_a_random_program_equals_the_model(oracle, source):
    expected, trace = record(Program(source))
    check(expected, oracle(trace))


@settings(
    max_examples=examples(10),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(source=programs)
def test_every_session_gets_every_event_of_its_categories(oracle, source):
    """The test runs two sessions at once; the second one records only one category."""
    config = recording_config(buffer_bytes=4 << 20)
    track_event = config.data_sources[0].config.track_event_config
    track_event.enabled_categories = ["rp.alpha"]
    track_event.disabled_categories = ["*"]
    with stretto.TracingSession(config) as other:
        expected, trace = record(Program(source))
        other.stop()
        partial = oracle(other.read())
    check(expected, oracle(trace))
    assert partial.errors() == []
    found = {row[0] for row in partial.query(EVENTS)}
    alpha = {seq for seq, event in expected.events.items() if event[1] == CATEGORIES[0].name}
    assert found == alpha
