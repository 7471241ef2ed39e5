"""The trace processor finds the same rows in Chrome's JSON and in the packets made of it."""

from __future__ import annotations

import io
import json
from collections import Counter
from typing import Any

import pytest

from stretto.analysis.conversion import convert
from tests.conformance.test_json_tables import ASYNC, COUNTERS, FLOWS
from tests.support.oracle import Oracle

pytestmark = pytest.mark.once

QUERIES = (
    """select s.ts, s.dur, s.name, s.category, s.depth, tid, pid, track.name,
        (select group_concat(substr(key, instr(key, '.') + 1) || '=' || display_value)
         from args a where a.arg_set_id = s.arg_set_id)
    from slice s join track on track.id = s.track_id
    left join thread_track tt on tt.id = s.track_id left join thread t using (utid)
    left join process_track pt on pt.id = s.track_id
    left join process p on p.upid = coalesce(t.upid, pt.upid)""",
    """select tid, t.name, pid, p.name from thread t left join process p using (upid)
    where tid != 0""",
    """select ts, value, t.name, pid from counter c
    join process_counter_track t on t.id = c.track_id join process using (upid)""",
    """select a.ts, a.name, b.ts, b.name from flow
    join slice a on a.id = slice_out join slice b on b.id = slice_in""",
)


@pytest.mark.parametrize("events", [ASYNC, COUNTERS, FLOWS], ids=["async", "counters", "flows"])
def test_packets_of_chromes_json_have_equal_rows(
    events: list[dict[str, Any]], oracle: type[Oracle]
) -> None:
    text = json.dumps(events).encode()
    packets = io.BytesIO()
    convert(io.BytesIO(text), "json", packets.write, "pftrace")
    before, after = oracle(text), oracle(packets.getvalue())
    for query in QUERIES:
        assert Counter(map(tuple, after.query(query))) == Counter(map(tuple, before.query(query)))
