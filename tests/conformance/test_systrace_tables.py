"""The kernel's events as text have the rows of Perfetto's trace processor; so have packets of
Android's and Chromium's producers that only set a counter or name a thread."""

from __future__ import annotations

import pytest

from stretto.analysis import TraceProcessor
from tests.conformance.test_heap_graph_tables import message, packet
from tests.conformance.test_kernel_event_tables import events
from tests.conformance.test_tables import check
from tests.support.oracle import Oracle

pytestmark = pytest.mark.once

LINES = r"""# tracer: nop
#           TASK-PID    TGID   CPU#  ||||   TIMESTAMP  FUNCTION
 my task-x-10    (   10) [001] d..2  10.000001: sched_switch: prev_comm=my task prev_pid=10 prev_prio=120 prev_state=S ==> next_comm=b next_pid=20 next_prio=98
 b-20    (-----) [001] d..2  10.000101: sched_waking: comm=my task-x pid=10 prio=120 target_cpu=001
 b-20    (   15) [001] d..2  10.000201: sched_switch: prev_comm=b prev_pid=20 prev_prio=98 prev_state=R+ ==> next_comm=c next_pid=30 next_prio=97
 <...>-30 [001] .... 10.000301: sched_switch: prev_comm=c prev_pid=30 prev_prio=97 prev_state=D|W ==> next_comm=swapper/1 next_pid=0 next_prio=120
 <idle>-0 [001] .... 10.000311: sched_blocked_reason: pid=30 iowait=1 caller=wait_on_page+0x1/0x2
 <idle>-0 [001] 10.000321: sched_switch: prev_comm=c prev_pid=0 prev_state=x next_pid=5
 <idle>-0 [000]  10.000401: cpu_frequency: state=1200000 cpu_id=3
 <idle>-0 [000]  10.000402: cpu_idle: state=4294967295 cpu_id=3
 <idle>-0 [000]  10.000403: cpu_frequency_limits: min=300 max=2000 cpu_id=2
 <idle>-0 [000]  10.000404: cpu_frequency_limits: min_freq=301 max_freq=2001 cpu_id=2
 <idle>-0 [000]  10.000405: clock_set_rate: gpu_clk state=5000 cpu_id=0
 <idle>-0 [000]  10.000406: clock_enable: name=mem state=1 cpu_id=0
 <idle>-0 [000]  10.000407: clock_disable: mem state=0 cpu_id=0
 w-40    (   40) [000] ....  10.000500: workqueue_execute_start: work struct 0000: function do_work_now
 w-40    (   40) [000] ....  10.000600: workqueue_execute_end: work struct 0000
 w-40    (   40) [000] ....  10.000601: thermal_temperature: thermal_zone=cpu id=0 temp_prev=1 temp=41000
 w-40    (   40) [000] ....  10.000602: cdev_update: type=fan target=3
 w-40    (   40) [000] ....  10.000603: rss_stat: size=4096 member=1 curr=1 mm_id=7
 w-40    (   40) [000] ....  10.000604: rss_stat: size=x member=1
 w-40    (   40) [000] ....  10.000700: tracing_mark_write: B|40|outer
 w-40    (   40) [000] ....  10.000701: print: B|40|inner slice|more
 w-40    (   40) [000] ....  10.000702: 0: E|40
 w-40    (   40) [000] ....  10.000703: tracing_mark_write: E
 w-40    (   40) [000] ....  10.000704: tracing_mark_write: C|40|ScreenState|1
 w-40    (   40) [000] ....  10.000705: tracing_mark_write: C|40|battery_stats.charging|1
 w-40    (   40) [000] ....  10.000706: tracing_mark_write: C|40|kill_one_process|50
 w-40    (   40) [000] ....  10.000707: tracing_mark_write: N|40|DeviceStateChanged|folded
 w-40    (   40) [000] ....  10.000708: tracing_mark_write: X|40
 w-40    (   40) [000] ....10.000709: tracing_mark_write: I|40|no gap
 w-40    (   40) [000] ....  10.000009: tracing_mark_write: I|40|earlier
 w-40    (   40) [000] ....  10: tracing_mark_write: I|40|no time
not a line
"""  # noqa: E501
HTML = f"""<!doctype html>
<html><body>
<script class="trace-data" type="application/text">
# nothing
</script>
  <script class="trace-data" type="application/text">
#   TASK-PID   CPU#
{LINES} </script>
 w-40    (   40) [000] ....  10.000800: tracing_mark_write: I|40|after the end
"""
TRACES = {
    "lines": LINES,
    "of trace-cmd": "cpus=8\n" + LINES,
    "of atrace": "TRACE:\n" + LINES,
    "html": HTML,
    "begins with a space": LINES.split("\n", 2)[2],
}


@pytest.mark.parametrize("name", TRACES)
def test_text_of_the_kernel_has_the_rows_of_the_trace_processor(
    name: str, oracle: type[Oracle]
) -> None:
    check(TRACES[name].encode())


def test_text_of_the_kernel_is_opened() -> None:
    with TraceProcessor(LINES.encode(), engine="sqlite") as processor:
        (row,) = processor.query("select dur from slice where name = 'outer'")
    assert row.dur == 3000


SANDBOX = (
    packet(60, message((1, 1), (3, message((1, 40)))))
    + packet(60, message((1, 2), (5, 1), (4, message((1, 40), (2, 1), (5, "a"))), (7, b"\x18\x01")))
    + packet(60, message((1, 3), (5, 1), (4, message((1, 40), (2, 2), (5, "b"))), (7, b"\x18\x00")))
    + packet(11, message((9, 1), (11, 2), (23, "x")))
)
START = packet(2, message((1, message((1, 2), (2, 0), (3, "kthreadd"), (7, 0)))))
SCREEN = packet(70, message((1, 2)), ts=5) + events((9, 5, 3, ((2, "C|5|ScreenState|0\n"),)))
FILTER = packet(35, message((11, message((1, 8), (2, 9), (20, 7), (20, 0)))))
PADDED = packet(34, message((1, 2), (9, 12)))


@pytest.mark.parametrize(
    "trace",
    [
        pytest.param(SANDBOX, id="tids of a sandbox"),
        pytest.param(START, id="process that started with the machine"),
        pytest.param(SCREEN, id="state of the screen"),
        pytest.param(FILTER, id="bytes removed by the filter"),
        pytest.param(PADDED, id="pages padded by zeros"),
    ],
)
def test_packets_of_some_producers_have_the_rows_of_the_trace_processor(
    trace: bytes, oracle: type[Oracle]
) -> None:
    check(trace)
