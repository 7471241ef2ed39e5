"""The rows of kernel events of memory, network, files and calls are those of Perfetto's trace
processor.

An event is built from the number of its field in FtraceEvent and the numbers of its own fields.
"""

from __future__ import annotations

import pytest

from tests.conformance.test_heap_graph_tables import Value, message, packet
from tests.conformance.test_tables import check
from tests.support.oracle import Oracle

pytestmark = pytest.mark.once

Fields = tuple[tuple[int, Value], ...]


def events(*found: tuple[int, int, int, Fields], cpu: int = 0) -> bytes:
    """Return a packet with kernel events: time, thread, kind, fields."""
    bundle: list[tuple[int, Value]] = [(1, cpu)]
    for ts, pid, kind, fields in found:
        bundle.append((2, message((1, ts), (2, pid), (kind, message(*fields)))))
    return packet(1, message(*bundle))


def kernel(release: str, machine: str) -> bytes:
    """Return a packet with the kernel's version."""
    return packet(45, message((1, message((1, "Linux"), (2, "v"), (3, release), (4, machine)))))


def tree(pid: int, *threads: int) -> bytes:
    """Return a packet with a process and its threads."""
    process = message((1, pid), (2, 1), (3, f"process {pid}"))
    others: Fields = tuple((2, message((1, tid), (3, pid))) for tid in threads)
    return packet(2, message((1, process), *others), ts=1)


RSS = 313
MEMORY = (
    tree(10, 11)
    + events(
        (100, 10, RSS, ((1, 0), (2, 4096), (3, 1), (4, 7))),
        (101, 20, RSS, ((1, 1), (2, 8192), (3, 0), (4, 7))),
        (102, 20, RSS, ((1, 2), (2, 1), (3, 0), (4, 8))),
        (103, 10, RSS, ((1, 3), (2, 5), (3, 0), (4, 7))),
        (104, 20, RSS, ((1, 4), (2, 6), (3, 0), (4, 7))),
        (105, 11, RSS, ((1, 9), (2, 6))),
        (106, 11, RSS, ((1, 1), (2, -1))),
        (107, 30, 359, ((1, 1), (2, 1), (3, 9), (4, 77))),
        (108, 11, 326, ((2, -900), (3, 11))),
        (109, 11, 326, ((2, 200), (3, 31))),
        (110, 11, 328, ((1, 3), (2, 4), (3, 5), (4, 2))),
        (111, 32, 328, ((1, 3), (2, 4), (3, 5), (4, 6))),
        (112, 32, 328, ((4, 7),)),
        (113, 32, 334, ((1, 11),)),
    )
    + events(
        (120, 33, 335, ((1, 1), (2, 4096), (3, 9000))),
        (121, 34, 335, ((1, 2), (2, 2048), (3, 11000))),
        (122, 34, 335, ((1, 1), (2, -4096), (3, 7000))),
        (123, 34, 315, ((1, "system"), (2, 10), (3, 100))),
        (124, 34, 314, ((2, 10), (3, 100))),
        (125, 34, 351, ((1, 5), (2, 1024), (3, 2048))),
        (126, 35, 351, ((1, 5), (2, -1024), (3, 1024))),
    )
)
CONTIGUOUS = events(
    (10, 5, 465, ((1, 4), (2, 6), (3, "c"))),
    (15, 5, 577, ((1, 1), (3, 7), (4, 8), (5, 9))),
    (20, 5, 466, ((2, 6), (3, 1), (4, 2), (5, 3), (6, "c"), (7, 5), (8, 6), (9, 7), (10, 8))),
    (30, 5, 465, ()),
    (40, 5, 576, ((1, "d"), (2, 11), (4, 12))),
)
NETWORK = events(
    (10, 5, 360, ((1, 1000), (2, "eth0"))),
    (11, 5, 360, ((1, 1100), (2, "eth0"))),
    (12, 5, 360, ((1, 3000),)),
    (13, 5, 361, ((1, 5000), (2, "eth0"), (3, 0))),
    (14, 5, 361, ((1, 5000), (2, "eth0"), (3, 1))),
    (20, 5, 362, ((2, 80), (3, 2), (4, 2), (5, 7), (6, 6), (8, 77), (9, 4000))),
    (21, 6, 362, ((2, 80), (3, 10), (4, 2), (5, 7), (6, 6), (8, 78), (9, 4001))),
    (22, 5, 362, ((2, 80), (3, 2), (4, 1), (5, 2), (6, 6), (8, 77), (9, 4000))),
    (23, 5, 362, ((2, 80), (3, 2), (4, 8), (5, 1), (6, 6), (8, 77), (9, 4000))),
    (24, 5, 362, ((3, 2), (4, 8), (5, 1), (6, 17), (8, 79))),
    (25, 5, 362, ((3, 1), (4, 8), (5, 1), (6, 6), (8, 79))),
    (26, 5, 362, ((3, 2), (4, 13), (5, 1), (6, 6), (8, 79))),
    (30, 5, 363, ((2, 1), (6, 2))),
    (31, 5, 365, ((7, 100), (10, "eth0"))),
    (32, 5, 366, ((1, -2),)),
    (33, 5, 367, ((2, 2048),)),
    (34, 5, 367, ((2, 34525),)),
    (35, 5, 367, ((2, 1),)),
    cpu=3,
)
CALLS = events(
    (10, 5, 329, ((1, 1), (2, 7), (2, 8))),
    (12, 5, 3, ((2, "B|5|inside\n"),)),
    (13, 5, 330, ((1, 1), (2, 9))),
    (14, 5, 329, ((1, 0), (2, 1), (2, 2), (2, 3))),
    (15, 5, 330, ((1, 0), (2, -5))),
    (16, 5, 3, ((2, "E|5\n"),)),
    (17, 5, 329, ((1, 15),)),
    (18, 5, 329, ((1, 549),)),
    (19, 5, 329, ((1, 550),)),
    (20, 5, 330, ((1, 549),)),
    (30, 6, 437, ((2, 0xFFFF),)),
    (31, 0, 437, ((2, 0x1234),)),
    (32, 6, 438, ((3, 0xFFFF),)),
    (33, 0, 438, ((3, 0x1234),)),
    (40, 7, 542, ((1, "probe"), (2, 1))),
    (41, 7, 542, ((1, "now"), (2, 3))),
    (42, 7, 542, ((1, "none"), (2, 0))),
    (43, 7, 542, ((1, "probe"), (2, 2))),
    cpu=2,
)
MARKS = events(
    (10, 5, 80, ((1, 4), (2, "mdss"), (3, 1))),
    (11, 5, 80, ((1, 4), (2, "mdss"), (3, 0))),
    (12, 5, 80, ((1, 4), (2, "mdss"))),
    (13, 6, 333, ((1, 4), (2, "sde"), (5, 1))),
    (14, 6, 333, ((1, 4), (2, "sde"), (5, 0))),
    (15, 6, 333, ((1, 4), (2, "count"), (3, ord("C")), (4, -3))),
    (16, 6, 333, ((1, 4), (2, "none"))),
    (17, 6, 333, ((1, 4), (2, "what"), (3, ord("Q")))),
    (20, 7, 348, ((1, 9), (4, "dpu"), (5, ord("B")))),
    (21, 7, 348, ((1, 9), (4, "dpu count"), (5, ord("C")), (6, 5))),
    (22, 7, 348, ((1, 9), (4, "dpu"), (5, ord("E")))),
    (23, 7, 348, ((1, 9), (4, "dpu"))),
    (30, 8, 484, ((1, 9), (2, "samsung"), (4, ord("I")))),
    (31, 8, 484, ((1, 9), (2, "samsung"), (3, 1))),
    (40, 10, 331, ((1, 1), (2, "zero"), (3, 10))),
    (41, 10, 331, ((1, 4), (2, "zero count"), (3, 10), (4, 6))),
    (42, 10, 331, ((1, 2), (3, 10))),
    (43, 10, 331, ((1, 8),)),
)
COUNTERS = events(
    (10, 5, 419, tuple((i, i * 10) for i in range(1, 24))),
    (20, 5, 420, tuple((i, i * 10) for i in range(1, 29))),
    (30, 5, 421, tuple((i, i) for i in range(1, 16))),
)
TRACES = {
    "memory": MEMORY,
    "contiguous memory": CONTIGUOUS,
    "contiguous memory on Linux 5.10": kernel("5.10.0", "x") + CONTIGUOUS,
    "contiguous memory on Linux 6.1": kernel("6.1.0", "x") + CONTIGUOUS,
    "network": NETWORK,
    "calls": CALLS,
    "calls on x86_64": kernel("6.1.0", "x86_64") + CALLS,
    "calls on aarch64": kernel("6.1.0", "aarch64") + CALLS,
    "calls on i686": kernel("6.1.0", "i686") + CALLS,
    "marks of drivers": MARKS,
    "counters": COUNTERS,
}


@pytest.mark.parametrize("name", TRACES)
def test_kernel_events_have_the_rows_of_the_trace_processor(
    name: str, oracle: type[Oracle]
) -> None:
    check(TRACES[name])
