"""The views in SQLite's dialect."""

from __future__ import annotations

import re

from stretto.analysis.sql_views import VIEWS

_CHANGES = ((r"\bas from\b", "as select * from"), (r"\bif\(", "iif("), ("null::bigint", "null"))

_ARGS = """
create view args as
    select *, case value_type
        when 'string' then string_value
        when 'json' then string_value
        when 'real' then cast(real_value as text)
        when 'bool' then iif(int_value = 0, 'false', 'true')
        when 'uint' then printf('%llu', int_value)
        when 'pointer' then '0x' || printf('%llx', int_value)
        else cast(int_value as text) end as display_value
    from __intrinsic_args;
create view _slice_rows as
    select id, ts, dur, track_id, category, name, depth, parent_id, arg_set_id, thread_ts,
        thread_dur, thread_instruction_count, thread_instruction_delta
    from _slice;
"""


def views() -> str:
    """Return the statements that create all views."""
    text = VIEWS
    for pattern, replacement in _CHANGES:
        text = re.sub(pattern, replacement, text)
    return _ARGS + text
