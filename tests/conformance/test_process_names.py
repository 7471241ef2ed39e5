"""Which name of a process the real trace processor shows when several packets name it."""

from __future__ import annotations

from typing import Any

from stretto.protos.trace import (
    ProcessDescriptor,
    ProcessTree,
    Trace,
    TracePacket,
    TrackDescriptor,
)

PID = 7


def _described(timestamp: int) -> TracePacket:
    process = ProcessDescriptor(pid=PID, process_name="shop.py")
    return TracePacket(
        timestamp=timestamp,
        trusted_packet_sequence_id=1,
        sequence_flags=TracePacket.SEQ_INCREMENTAL_STATE_CLEARED,
        track_descriptor=TrackDescriptor(uuid=99, process=process),
    )


def _listed(timestamp: int, *words: str) -> TracePacket:
    process = ProcessTree.Process(pid=PID, ppid=1, cmdline=list(words))
    tree = ProcessTree(processes=[process])
    return TracePacket(timestamp=timestamp, trusted_packet_sequence_id=2, process_tree=tree)


def test_process_tree_wins_over_a_track_descriptor_in_any_order(oracle: Any) -> None:
    python = ("/usr/bin/python3", "shop.py")
    alone = [_described(1)]
    before, after = [_listed(1, *python), _described(2)], [_described(1), _listed(2, *python)]
    names = [
        oracle(Trace(packet=packets).encode()).query(
            f"select name, cmdline from process where pid = {PID}"
        )
        for packets in (alone, before, after)
    ]
    assert names == [
        [("shop.py", None)],
        [("/usr/bin/python3", "/usr/bin/python3 shop.py")],
        [("/usr/bin/python3", "/usr/bin/python3 shop.py")],
    ]
