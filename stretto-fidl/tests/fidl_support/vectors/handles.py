"""Test vectors for handles and endpoints: presence, types, rights, order, numbers."""

from __future__ import annotations

from fidl_support.vectors.case import (
    FF8,
    ZERO8,
    decode_fails,
    encode_fails,
    ok,
    outside,
    pad,
    u32,
    u64,
)
from fidl_support.vectors.schema import EVENT_BASIC

HERE = FF8[:4]
ANY = ("handle", None)
EVENT = ("event", None)
VMO = ("vmo", None)
CHANNEL = ("channel", None)
CHANNEL_RIGHTS = 0xF00E  # The rights transfer, read, write, signal, signal_peer, wait and inspect.

CASES = [
    *(
        ok(f"{kind}", "OneHandle", pad(HERE), lambda t, h: t.OneHandle(h=h), handles=[(kind, None)])
        for kind in ("handle", "event", "vmo", "channel", "socket", "timer")
    ),
    ok("event_typed", "OneEvent", pad(HERE), lambda t, h: t.OneEvent(h=h), handles=[EVENT]),
    ok("vmo_typed", "OneVmo", pad(HERE), lambda t, h: t.OneVmo(h=h), handles=[VMO]),
    ok("absent", "OptionalHandle", ZERO8, lambda t: t.OptionalHandle()),
    ok(
        "optional_there",
        "OptionalHandle",
        pad(HERE),
        lambda t, h: t.OptionalHandle(h=h),
        handles=[EVENT],
    ),
    decode_fails("required_absent", "OneHandle", ZERO8, "NON_NULLABLE_TYPE_WITH_NULL_VALUE"),
    encode_fails(
        "required_none",
        "OneHandle",
        lambda t: t.OneHandle(h=None),
        "NON_NULLABLE_TYPE_WITH_NULL_VALUE",
    ),
    encode_fails("number", "OneHandle", lambda t: t.OneHandle(h=5), "WRONG_TYPE"),
    *(
        decode_fails(
            f"presence_{presence:x}_{name}_{len(handles)}",
            name,
            pad(u32(presence)),
            "INVALID_HANDLE_PRESENCE_INDICATOR",
            handles=handles,
        )
        for presence in (1, 0xABABABAB, 0xFFFFFFFE)
        for name in ("OneHandle", "OptionalHandle")
        for handles in ([], [EVENT])
    ),
    decode_fails("none_came", "OneHandle", pad(HERE), "TOO_FEW_HANDLES"),
    decode_fails(
        "second_did_not_come",
        "Handles",
        u64(2) + FF8 + HERE + HERE,
        "TOO_FEW_HANDLES",
        handles=[EVENT],
    ),
    decode_fails(
        "two_came", "OneHandle", pad(HERE), "TOO_MANY_HANDLES_IN_MESSAGE", handles=[EVENT, EVENT]
    ),
    decode_fails(
        "one_came_for_nothing",
        "OptionalHandle",
        ZERO8,
        "TOO_MANY_HANDLES_IN_MESSAGE",
        handles=[EVENT],
    ),
    decode_fails(
        "one_came_for_no_handle", "Empty", ZERO8, "TOO_MANY_HANDLES_IN_MESSAGE", handles=[EVENT]
    ),
    *(
        decode_fails(
            f"{kind}_is_no_{wanted}",
            f"One{wanted}",
            pad(HERE),
            "INCORRECT_HANDLE_TYPE",
            handles=[(kind, None)],
        )
        for wanted, kind in (
            ("Event", "vmo"),
            ("Event", "channel"),
            ("Event", "handle"),
            ("Vmo", "event"),
            ("Vmo", "socket"),
        )
    ),
    decode_fails(
        "typed_before_rights",
        "BasicEvent",
        pad(HERE),
        "INCORRECT_HANDLE_TYPE",
        handles=[("channel", 0)],
    ),
    ok(
        "rights_exact",
        "BasicEvent",
        pad(HERE),
        lambda t, h: t.BasicEvent(h=h),
        handles=[("event", EVENT_BASIC)],
    ),
    ok(
        "rights_in_excess",
        "BasicEvent",
        pad(HERE),
        lambda t, h: t.BasicEvent(h=h),
        way="decode",
        handles=[("event", EVENT_BASIC | 1 << 12)],
    ),
    *(
        decode_fails(
            f"right_{right}_missing",
            "BasicEvent",
            pad(HERE),
            "MISSING_REQUIRED_HANDLE_RIGHTS",
            handles=[("event", EVENT_BASIC & ~(1 << right))],
        )
        for right in (0, 1, 14, 15)
    ),
    decode_fails(
        "no_rights",
        "BasicEvent",
        pad(HERE),
        "MISSING_REQUIRED_HANDLE_RIGHTS",
        handles=[("event", 0)],
    ),
    *(
        ok(
            f"vector_of_{n}",
            "Handles",
            u64(n) + FF8 + pad(HERE * n),
            lambda t, *h: t.Handles(v=list(h)),
            handles=[EVENT] * n,
        )
        for n in (0, 1, 2, 3, 64)
    ),
    ok(
        "vector_with_gaps",
        "OptionalHandles",
        u64(3) + FF8 + pad(bytes(4) + HERE + bytes(4)),
        lambda t, h: t.OptionalHandles(v=[None, h, None]),
        handles=[EVENT],
    ),
    decode_fails(
        "vector_with_absent",
        "Handles",
        u64(2) + FF8 + HERE + bytes(4),
        "NON_NULLABLE_TYPE_WITH_NULL_VALUE",
        handles=[EVENT],
    ),
    encode_fails(
        "vector_with_none",
        "Handles",
        lambda t: t.Handles(v=[None]),
        "NON_NULLABLE_TYPE_WITH_NULL_VALUE",
    ),
    decode_fails(
        "vector_padding",
        "Handles",
        u64(1) + FF8 + HERE + HERE,
        "INVALID_PADDING_BYTE",
        handles=[EVENT],
    ),
    ok(
        "array",
        "HandleArray",
        pad(HERE * 3),
        lambda t, *h: t.HandleArray(a=list(h)),
        handles=[EVENT, VMO, CHANNEL],
    ),
    decode_fails(
        "array_of_two", "HandleArray", pad(HERE * 3), "TOO_FEW_HANDLES", handles=[EVENT, EVENT]
    ),
    ok(
        "depth_first",
        "HandleOrder",
        u64(2) + FF8 + pad(HERE) + HERE * 2,
        lambda t, one, two, last: t.HandleOrder(v=[one, two], h=last),
        handles=[EVENT, EVENT, VMO],
    ),
    decode_fails(
        "not_depth_first",
        "HandleOrder",
        u64(2) + FF8 + pad(HERE) + HERE * 2,
        "INCORRECT_HANDLE_TYPE",
        handles=[VMO, EVENT, EVENT],
    ),
    ok("box_absent", "HandleBox", ZERO8, lambda t: t.HandleBox()),
    ok(
        "box_there",
        "HandleBox",
        FF8 + pad(HERE),
        lambda t, h: t.HandleBox(b=t.OneHandle(h=h)),
        handles=[ANY],
    ),
    encode_fails(
        "between_failures",
        "TextThenHandle",
        lambda t, one, two: t.TextThenHandle(before=one, text="abc", after=two),
        "STRING_TOO_LONG",
        handles=[EVENT, EVENT],
    ),
    decode_fails(
        "between_failures",
        "TextThenHandle",
        pad(HERE) + u64(3) + FF8 + pad(HERE) + pad(b"abc"),
        "STRING_TOO_LONG",
        handles=[EVENT, EVENT],
    ),
    *(
        ok(
            f"{end}",
            end,
            pad(HERE),
            lambda t, h, e=end: getattr(t, e)(**{e[0].lower(): h}),
            handles=[CHANNEL],
        )
        for end in ("Client", "Server")
    ),
    ok("optional_client_absent", "OptionalClient", ZERO8, lambda t: t.OptionalClient()),
    ok("optional_server_absent", "OptionalServer", ZERO8, lambda t: t.OptionalServer()),
    ok(
        "optional_client_there",
        "OptionalClient",
        pad(HERE),
        lambda t, h: t.OptionalClient(c=h),
        handles=[CHANNEL],
    ),
    ok(
        "optional_server_there",
        "OptionalServer",
        pad(HERE),
        lambda t, h: t.OptionalServer(s=h),
        handles=[CHANNEL],
    ),
    *(
        decode_fails(f"{end}_absent", end, ZERO8, "NON_NULLABLE_TYPE_WITH_NULL_VALUE")
        for end in ("Client", "Server")
    ),
    *(
        decode_fails(
            f"{end}_is_a_{kind}", end, pad(HERE), "INCORRECT_HANDLE_TYPE", handles=[(kind, None)]
        )
        for end in ("Client", "Server", "OptionalClient", "OptionalServer")
        for kind in ("event", "socket")
    ),
    *(
        decode_fails(
            f"{end}_lacks_right_{right}",
            end,
            pad(HERE),
            "MISSING_REQUIRED_HANDLE_RIGHTS",
            handles=[("channel", CHANNEL_RIGHTS & ~(1 << right))],
        )
        for end in ("Client", "Server")
        for right in (1, 2, 3, 12, 13, 14, 15)
    ),
    decode_fails(
        "unknown_table_member_wants_more",
        "OneResourceTable",
        u64(3) + FF8 + ZERO8 * 2 + outside(8, 2) + bytes(8),
        "ENVELOPE_HANDLES_EXCEED_MESSAGE_LENGTH",
        handles=[EVENT],
    ),
]
