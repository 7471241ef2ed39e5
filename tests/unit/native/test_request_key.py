"""request_key() returns the flow key in the metadata, or 0; it never raises."""

from __future__ import annotations

import gc
import sys
from typing import NamedTuple

import pytest

from stretto._native import request_key

PARENT = ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
FLOW = ("x-stretto-flow", "0123456789abcdef")


class Metadatum(NamedTuple):
    """A key and a value of metadata, as grpcio passes them."""

    key: str
    value: object


def test_x_stretto_flow_header_overrides_traceparent() -> None:
    parent = request_key((PARENT,))
    assert parent not in (0, 0x0123456789ABCDEF)
    assert request_key((PARENT, FLOW)) == request_key([FLOW, PARENT]) == 0x0123456789ABCDEF
    assert request_key((("x-stretto-flow", "bad"), PARENT)) == parent


def test_first_valid_traceparent_is_used() -> None:
    other = ("traceparent", PARENT[1].replace("b7ad", "b7ae"))
    assert request_key((("traceparent", "bad"), PARENT, other)) == request_key((PARENT,))


def test_named_tuples_are_accepted_as_header_pairs() -> None:
    assert request_key([Metadatum("user-agent", "x"), Metadatum(*FLOW)]) == 0x0123456789ABCDEF


@pytest.mark.parametrize(
    "pairs",
    [
        None, (), [], "traceparent", 7, iter([FLOW]), {FLOW}, dict([FLOW]), (None, 3, "ab", ()),
        (("x-stretto-flow",), (*FLOW, 1), list(FLOW)), (("X-Stretto-Flow", FLOW[1]),),
        ((FLOW[0], FLOW[1].encode()), (FLOW[0].encode(), FLOW[1]), (FLOW[0], None)),
        (("\udc80", FLOW[1]), (FLOW[0], "\udc80" * 16), (FLOW[0], "\u0661" * 16)),
        ((FLOW[0] + "\0", FLOW[1]), (FLOW[0], FLOW[1][:15] + "\0")),
    ],
)  # fmt: skip
def test_request_key_of_metadata_without_a_valid_header_is_0(pairs: object) -> None:
    assert request_key(pairs) == 0  # type: ignore[arg-type]


def test_request_key_leaks_no_memory() -> None:
    pairs = (("\udc80", "x"), (1, 2), FLOW, PARENT)
    for _ in range(10):
        request_key(pairs)
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(1000):
        request_key(pairs)
    gc.collect()
    assert sys.getallocatedblocks() - before < 100
