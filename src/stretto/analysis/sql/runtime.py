"""Macros that give DuckDB the values of SQLite's operators and functions.

A macro has a form for each type of its arguments. DuckDB chooses the form when it binds a
statement. So the comparison of two integers is DuckDB's own operator.
"""

from __future__ import annotations

from stretto.analysis.sql.errors import NO_DELIMITER, NO_FIELD, SEVERAL_ROWS

SETTINGS = """
set default_null_order = 'nulls_first_on_asc_last_on_desc';
set integer_division = true;
set ieee_floating_point_ops = false;
set error_on_division_by_zero = false;
set scalar_subquery_error_on_multiple_rows = false;
"""

_KINDS = {"bigint": 0, "hugeint": 0, "double": 0, "varchar": 1, "blob": 2}
"""SQLite's order of values: numbers, text, blobs. DuckDB's sums of integers are HUGEINT."""

_COMPARISONS = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def _overloads(name: str, forms: list[str]) -> str:
    return f"create macro {name} {', '.join(forms)};\n"


def _comparison(name: str, operator: str) -> str:
    """Return the macro of a comparison, which orders values of different kinds by their kind."""
    forms = []
    for a, a_kind in _KINDS.items():
        for b, b_kind in _KINDS.items():
            body = f"a {operator} b"
            if a_kind != b_kind:
                smaller = operator in ("<", "<=") if a_kind < b_kind else operator in (">", ">=")
                result = str(smaller or operator == "<>").lower()
                body = f"if(a is null or b is null, null, {result})"
            forms.append(f"(a {a}, b {b}) as {body}")
    return _overloads(f"_{name}", forms)


def _same(name: str, is_same: str, both_null: str) -> str:
    forms = [
        f"(a {a}, b {b}) as "
        + (f"a {is_same} b" if a_kind == b_kind else f"{both_null}(a is null and b is null)")
        for a, a_kind in _KINDS.items()
        for b, b_kind in _KINDS.items()
    ]
    return _overloads(f"_{name}", forms)


_UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_FOLD = "translate({}, '" + _UPPER + "', '" + _UPPER.lower() + "')"
_RAISE = "translate({}, '" + _UPPER.lower() + "', '" + _UPPER + "')"
_PREFIX = r"regexp_extract(a, '^\s*([-+]?[0-9]+)', 1)"
_REAL_PREFIX = (
    r"regexp_extract(a, '^\s*([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)', 1)"
)
_TYPE_NAME = """case when a is null then 'null'
    else case if(typeof(a) = 'VARIANT', cast(variant_typeof(a::variant) as varchar), typeof(a))
        when 'VARCHAR' then 'text' when 'STRING_LITERAL' then 'text' when 'BLOB' then 'blob'
        when 'DOUBLE' then 'real' else 'integer' end end"""
"""SQLite's name of the type of `a`."""

_NUMBERS = {"bigint": "a", "double": "a", "varchar": "try_cast(a as double)"}
"""An argument of each type as a number."""

_FUNCTIONS = {
    # SQLite has NULL where there is no number.
    "_defined": ["(a) as if(isnan(a), null, a)"],
    # The truth value of a text is that of the number at its beginning.
    "_truth": [
        "(a boolean) as a",
        "(a bigint) as a <> 0",
        "(a hugeint) as a <> 0",
        "(a double) as a <> 0",
        f"(a varchar) as coalesce(try_cast({_REAL_PREFIX} as double), 0) <> 0",
    ],
    "_text": [
        "(a varchar) as a",
        "(a bigint) as cast(a as varchar)",
        "(a hugeint) as cast(a as varchar)",
        "(a double) as _text_of_real(a)",
        "(a blob) as decode(a)",
    ],
    "_int": [
        "(a bigint) as a",
        "(a hugeint) as cast(a as bigint)",
        (
            "(a double) as if(a is null, null, coalesce(try_cast(trunc(a) as bigint), "
            "if(a > 0, 9223372036854775807, -9223372036854775807 - 1)))"
        ),
        (
            "(a varchar) as if(a is null, null, "
            f"coalesce(try_cast(nullif({_PREFIX}, '') as bigint), if({_PREFIX} = '', 0, "
            f"if({_PREFIX} like '-%', -9223372036854775807 - 1, 9223372036854775807))))"
        ),
    ],
    "_real": [
        "(a bigint) as cast(a as double)",
        "(a hugeint) as cast(a as double)",
        "(a double) as a",
        (
            "(a varchar) as if(a is null, null, "
            f"coalesce(try_cast(nullif({_REAL_PREFIX}, '') as double), 0.0e0))"
        ),
    ],
    "_blob": ["(a blob) as a", "(a varchar) as encode(a)", "(a bigint) as encode(a::varchar)"],
    # These have one form, as DuckDB can't choose a form by the type of an aggregate.
    "_typeof": [f"(a) as {_TYPE_NAME}"],
    "_text_of_any": [
        (
            "(a) as case when typeof(a) <> 'DOUBLE' then cast(a as varchar) else "
            "_text_of_real(try_cast(a as double)) end"
        )
    ],
    "_length_of_any": ["(a) as cast(length(_text_of_any(a)) as bigint)"],
    "_hex_of_any": [
        (
            "(a) as coalesce(if(typeof(a) = 'BLOB', hex(try_cast(a as blob)), "
            "hex(_text_of_any(a))), '')"
        )
    ],
    "_unicode": ["(a) as cast(nullif(unicode(a), -1) as bigint)"],
    "_unhex": ["(a) as if(strlen(a) % 2 = 1, null, try(unhex(a)))"],
    "_right_shift": [
        (
            "(a, b) as case when b >= 64 then if(a < 0, -1, 0) when b >= 0 then a >> b "
            "when b > -64 then a << -b when b is null or a is null then null else 0 end"
        )
    ],
    "_left_shift": ["(a, b) as if(b < 0, _right_shift(a, -b), a << b)"],
    "_fmod": ["(a, b) as a - trunc(a / cast(b as double)) * cast(b as double)"],
    # SQLite rounds a half away from zero. A number with few binary digits may be such a half.
    "_half_up": [
        (
            "(a, digits) as if(a * pow(2, digits + 1) = trunc(a * pow(2, digits + 1)), "
            "nextafter(a, a * 2), a)"
        )
    ],
    **{
        f"_{name}": [f"({arguments}) as _defined({name}({arguments}))"]
        for name, arguments in {"pow": "a, b", "acosh": "a", "atanh": "a", "log2": "a"}.items()
    },
    "_length": [
        "(a varchar) as cast(length(a) as bigint)",
        "(a bigint) as cast(length(cast(a as varchar)) as bigint)",
        "(a double) as cast(length(_text(a)) as bigint)",
        "(a blob) as cast(octet_length(a) as bigint)",
    ],
    "_hex": [
        "(a blob) as coalesce(hex(a), '')",
        "(a varchar) as coalesce(hex(a), '')",
        "(a bigint) as coalesce(hex(a::varchar), '')",
        "(a double) as coalesce(hex(_text(a)), '')",
    ],
    # SQLite converts only ASCII letters. DuckDB's own functions are faster: they convert texts of
    # ASCII characters.
    "_lower": [f"(a) as if(strlen(a) = length(a), lower(a), {_FOLD.format('a')})"],
    "_upper": [f"(a) as if(strlen(a) = length(a), upper(a), {_RAISE.format('a')})"],
    # ILIKE ignores the case of all letters, SQLite only that of ASCII letters. So the matches of
    # ILIKE are checked again.
    "_like": [f"(a, b) as a ilike b and {_FOLD.format('a')} like {_FOLD.format('b')}"],
    "_mod": [
        "(a bigint, b bigint) as a % b",
        "(a double, b double) as cast(trunc(a)::bigint % trunc(b)::bigint as double)",
    ],
    # SQLite rounds the decimal digits of a number.
    "_round": [
        (
            "(a, digits) as 0e0 + case when digits is null then null "
            "when digits <= 0 then round(cast(a as double)) "
            "else cast(printf('%.' || least(digits, 30) || 'f', "
            "_half_up(cast(a as double), least(digits, 30))) as double) end"
        )
    ],
    # A text that is no number gives no value.
    **{
        name: [f"(a {kind}) as {body.format(value)}" for kind, value in _NUMBERS.items()]
        for name, body in {
            "_exp": "exp({0})",
            "_ln": "if({0} > 0, ln({0}), null)",
            "_sqrt": "if({0} >= 0, sqrt({0}), null)",
        }.items()
    },
    **{
        f"_{name}": [
            "(a bigint) as a",
            f"(a double) as {name}(a)",
            f"(a varchar) as {name}(try_cast(a as double))",
        ]
        for name in ("ceil", "floor")
    },
    # The value of a function whose query has `n` rows.
    "_single": [f"(n, value, name) as if(n > 1, error(name || '{SEVERAL_ROWS}'), value)"],
    "_str_split": [
        (
            "(a, separator, n) as case when coalesce(separator, '') = '' then "
            f"error('{NO_DELIMITER}') when coalesce(n, -1) < 0 then error('{NO_FIELD}') "
            "else string_split(a, separator)[n + 1] end"
        )
    ],
}

_TRACE = """
create macro trace_start() as (select start_ts from trace_bounds);
create macro trace_end() as (select end_ts from trace_bounds);
create macro trace_dur() as (select end_ts - start_ts from trace_bounds);
create view _arg_values as
    select arg_set_id as _set, key as _key, int_value as _int, string_value as _string,
        coalesce(real_value, cast(int_value as double)) as _real from __intrinsic_args;
create macro _arg_int(_of, _named) as (
    select any_value(_int) from _arg_values where _set = _of and _key = _named);
create macro _arg_real(_of, _named) as (
    select any_value(_real) from _arg_values where _set = _of and _key = _named);
create macro _arg_text(_of, _named) as (
    select any_value(_string) from _arg_values where _set = _of and _key = _named);
create macro _arg_any(_of, _named) as (
    select any_value(_value) from _arg_texts where _set = _of and _key = _named);
-- Without NULL, which DuckDB orders in another way inside of structs.
create macro _arg_order(_of, _named) as coalesce((
    select {'kind': coalesce(max(if(_string is null, 1, 2)), 0), 'real': coalesce(max(_real), 0),
        'text': coalesce(max(_string), '')}
    from _arg_values where _set = _of and _key = _named), {'kind': 0, 'real': 0, 'text': ''});
-- An argument that the trace doesn't have: NULL of no type, so that it fits everywhere.
create macro _arg_absent(_of, _named) as case when _of is null then null end;
-- Its names differ from all names of columns and tables in the arguments.
create view _spans as
    select id as _id, track_id as _track, ts as _begin, dur as _lasting from _slice;
create macro slice_is_ancestor(_upper, _inner) as (
    select cast(_a._track = _b._track and _a._begin <= _b._begin and (_a._lasting = -1
            or _b._lasting <> -1 and _a._lasting - _b._lasting >= _b._begin - _a._begin) as bigint)
    from _spans _a, _spans _b where _a._id = _upper and _b._id = _inner);
create view _clock_points as
    select ts as _trace_time, clock_id as _id, clock_value as _value from clock_snapshot;
create macro _clock_value(_at, _clock) as (
    select least(
        coalesce(_at + arg_max(_value - _trace_time, _trace_time) filter (where _trace_time <= _at),
            min_by(_value, _trace_time)),
        min_by(_value, _trace_time) filter (where _trace_time > _at))
    from _clock_points where _id = _clock);
create macro to_realtime(_at) as _clock_value(_at, 1);
create macro to_monotonic(_at) as _clock_value(_at, 3);
create macro abs_time_str(_at) as (
    select strftime(make_timestamp(_ns // 1000), '%Y-%m-%dT%H:%M:%S.')
        || printf('%09d', _ns % 1000000000) from (select to_realtime(_at) as _ns));
create macro to_timecode(_at) as printf('%02d:%02d:%02d %03d %03d %03d', _at // 3600000000000,
    _at // 60000000000 % 60, _at // 1000000000 % 60, _at // 1000000 % 1000, _at // 1000 % 1000,
    _at % 1000);
"""

_SLICES = """
create view _parents as select id as _id, parent_id as _parent from _slice;
create macro _up(_start) as table
    with recursive up(_at) as (
        select _parent from _parents where _id = _start and _parent is not null
        union all select _parent from _parents join up on _id = _at where _parent is not null)
    select _at from up;
create macro _down(_start) as table
    with recursive down(_at) as (
        select _id from _parents where _parent = _start
        union all select _id from _parents join down on _parent = _at)
    select _at from down;
create macro ancestor_slice(_start) as table
    select s.* exclude (cat, slice_id) from _up(_start) join slice s on s.id = _at order by s.id;
create macro descendant_slice(_start) as table
    select s.* exclude (cat, slice_id) from _down(_start) join slice s on s.id = _at order by s.id;
-- For one slice, by what the importer guarantees: the slices of a track are in the order of their
-- begins, and the last ones before a slice, of each smaller depth, are its ancestors. DuckDB would
-- read all slices for each step of a recursion.
create macro _one_slice(_start) as table
    select id as _id, track_id as _track, depth as _depth from _slice where id = _start;
create macro _ancestor_slice(_start) as table
    select * from _slice where id in (
        select max(id) from _slice, _one_slice(_start)
        where track_id = _track and id < _id and depth < _depth group by depth)
    order by id;
create macro _descendant_slice(_start) as table
    select s.* from _slice s, _one_slice(_start)
    where track_id = _track and id > _id and depth > _depth and id < coalesce(
        (select min(n.id) from _slice n, _one_slice(_start) o
            where n.track_id = o._track and n.id > o._id and n.depth <= o._depth),
        9223372036854775807)
    order by id;
create view _flow_ends as select slice_out as _out, slice_in as _in from flow;
create view _forward as
    select _out as _from, _in as _to from _flow_ends
    union all select _parent, _id from _parents where _parent is not null;
create view _backward as
    select _in as _from, _out as _to from _flow_ends
    union all select _id, _parent from _parents where _parent is not null;
create macro _reached(_start) as table
    with recursive reached(_at) as (
        select _start union select _to from _forward join reached on _from = _at)
    select _at from reached;
create macro _back(_start) as table
    with recursive back(_at) as (
        select _start union select _to from _backward join back on _from = _at)
    select _at from back;
create macro following_flow(_start) as table
    select row_number() over (order by f.slice_out, f.id) - 1 as id, f.* exclude (id)
    from _reached(_start) join flow f on f.slice_out = _at order by 1;
create macro preceding_flow(_start) as table
    select row_number() over (order by f.slice_in desc, f.id) - 1 as id, f.* exclude (id)
    from _back(_start) join flow f on f.slice_in = _at order by 1;
create macro _outward(_start) as table
    with recursive outward(_at) as (
        select _start union select _in from _flow_ends join outward on _out = _at)
    select _at from outward;
create macro _inward(_start) as table
    with recursive inward(_at) as (
        select _start union select _out from _flow_ends join inward on _in = _at)
    select _at from inward;
create macro directly_connected_flow(_start) as table
    select row_number() over (order by f.id) - 1 as id, f.* exclude (id)
    from (
        select id as _flow from _outward(_start) join flow on slice_out = _at
        union select id from _inward(_start) join flow on slice_in = _at)
    join flow f on f.id = _flow order by 1;
"""

_FLAME_GRAPHS = """
create view _heap_nodes as
    select ts as _time, upid as _process, id as _id, parent_id as _parent, name as _name,
        depth as _depth, count as _count, size as _size, cumulative_count as _all_count,
        cumulative_size as _all_size
    from __intrinsic_heap_graph_tree;
create macro _all_nodes(_at, _of) as table
    select _id, _parent, _name, _depth, _count, _size, _all_count, _all_size
    from _heap_nodes where _time = _at and _process = _of;
create macro _focused_nodes(_at, _of, _part) as table
    with recursive nodes as (from _heap_nodes where _time = _at and _process = _of),
    below(_n) as (
        select _id from nodes where contains(lower(_name), lower(_part))
        union select _id from nodes join below on _parent = _n),
    kept(_n) as (
        select _n from below
        union select _parent from nodes join kept on _id = _n where _parent is not null),
    sums(_n, _inner) as (
        select _n, _n from kept
        union all select _parent, _inner from sums join nodes on _id = _n
        where _parent is not null),
    totals as (
        select s._n, sum(_count)::bigint as _all_count, sum(_size)::bigint as _all_size
        from sums s join nodes on _id = _inner group by 1),
    numbers as (select _n, row_number() over (order by _n) - 1 as _number from kept)
    select n._number as _id, p._number as _parent, _name, _depth, _count, _size, t._all_count,
        t._all_size
    from numbers n join nodes on _id = n._n join totals t on t._n = n._n
    left join numbers p on p._n = _parent;
create macro experimental_flamegraph(_kind, _at, _constraint, _of, _group, _part) as table
    select _id as id, 'graph' as profile_type, null::bigint as ts_in,
        null::varchar as ts_constraint, _of as upid, null::varchar as upid_group,
        null::varchar as focus_str, _at as ts, _depth as depth, _name as name, 'JAVA' as map_name,
        _count as count, _all_count as cumulative_count, _size as size,
        _all_size as cumulative_size, 0 as alloc_count, 0 as cumulative_alloc_count,
        0 as alloc_size, 0 as cumulative_alloc_size, _parent as parent_id,
        null::varchar as source_file, null::bigint as line_number
    from (from _all_nodes(_at, _of) where coalesce(_part, '') = ''
        union all from _focused_nodes(_at, _of, _part) where coalesce(_part, '') <> '')
    order by _id;
"""

RUNTIME = (
    SETTINGS
    + "".join(_comparison(name, operator) for name, operator in _COMPARISONS.items())
    + _same("is", "is not distinct from", "")
    + _same("is_not", "is distinct from", "not ")
    + "".join(_overloads(name, forms) for name, forms in _FUNCTIONS.items())
    + _TRACE
    + _SLICES
    + _FLAME_GRAPHS
)
"""The statements that prepare a connection, after the trace's tables and views."""
