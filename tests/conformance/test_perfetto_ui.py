"""Perfetto's UI opens traces that `stretto view` serves, and records by `stretto bridge`."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

import stretto
from stretto.cli.bridge import PORT
from stretto.recorder.host.io_waits import missing_right
from tests.support import reference_service
from tests.support.commands import Command
from tests.support.live_program import LiveProgram
from tests.support.perfetto_ui import MARKS, PerfettoUi, perfetto_ui
from tests.support.polling import wait_until
from tests.support.recorded import record as record_program

pytestmark = MARKS

ERRORS = """
select name, value from stats
where value != 0
  and (severity in ('error', 'data_loss') or name = 'tokenizer_skipped_packets')
"""

HALF_AN_HOUR = "5"
"""The position of a slider: a recording of 10 s might end before a busy machine has begun."""

PLAYER = """
import stretto
game = stretto.Category("game")
stretto.connect()
def play(rounds):
    for number in range(rounds):
        with game.slice("round", number=number):
            with game.slice("move"):
                pass
"""


@pytest.fixture
def ui() -> Iterator[PerfettoUi]:
    with perfetto_ui() as ui:
        yield ui


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Path of a trace with 100 slices named 'round'; each contains two slices."""
    path = tmp_path / "a 50% game & more?.pftrace"
    game = stretto.Category("game")
    with stretto.recording(path):
        for number in range(100):
            with game.slice("round", number=number):
                for _ in range(2):
                    with game.slice("move"):
                        pass
    return path


def test_ui_opens_a_trace(ui: PerfettoUi, trace: Path) -> None:
    with Command("view", "--offline", "--no-browser", "--port", "0", str(trace)) as view:
        ui.open(view.line_with("#!/?url="))
        ui.wait_for_trace()
        view.line_with("the page has")
        ui.expand_all()
        ui.screenshot("ui-view-offline")
        assert ui.query("select name, count() from slice group by name order by name") == [
            ["move", 200],
            ["round", 100],
        ]
        assert ui.query(ERRORS) == []
        # The UI shows the name of the file and the track of the thread.
        assert ui.page.get_by_text("game & more").first.is_visible()
        assert ui.page.get_by_text("MainThread").first.is_visible()
        assert view.interrupt() == 0


WAITS = """
import asyncio, time

async def handle_order():
    await asyncio.sleep(0.6)  # sleep: a wait to be seen
    time.sleep(0.6)  # sleep: a wait to be seen

asyncio.run(handle_order())
"""


def test_ui_shows_what_blocks_an_event_loop(ui: PerfettoUi, tmp_path: Path) -> None:
    script, path = tmp_path / "shop.py", tmp_path / "shop.pftrace"
    script.write_text(WAITS)
    assert record_program(path, str(script)).status == 0
    with Command("view", "--offline", "--no-browser", "--port", "0", str(path)) as view:
        names = ui.first_screen(view.line_with("#!/?url="))
        ui.screenshot("ui-blocking-calls")
        assert {"handle_order", "time.sleep"} <= set(names)
        # CPython 3.11 does not report calls of C functions.
        assert sys.version_info < (3, 12) or "select.epoll.poll" in names
        assert ui.query(ERRORS) == []
        assert view.interrupt() == 0


ORDERS = """
import os, time
def work():
    end = time.monotonic() + 0.3
    while time.monotonic() < end:
        pass
def load(source):
    return os.read(source, 100)
source, sink = os.pipe()
if not os.fork():
    time.sleep(0.7)  # sleep: the wait to be seen
    os.write(sink, b"order 17")
    os._exit(0)
work()
load(source)
os.wait()
"""
STATES = """
select s.name, t.state from slice s
join thread_track tt on tt.id = s.track_id join thread_state t using (utid)
where s.name in ('work', 'load') and t.ts >= s.ts and t.ts < s.ts + s.dur
group by 1, 2 having sum(t.dur) > 50000000
"""
IN_LOAD = """
select s.name, p.name from slice s join slice p on p.ts <= s.ts and p.ts + p.dur >= s.ts + s.dur
where s.category = 'linux.syscall_waits' and s.dur > 200000000 and p.name = 'load'
"""


def test_ui_shows_scheduling_and_system_calls_beside_slices(ui: PerfettoUi, tmp_path: Path) -> None:
    if reason := missing_right():
        pytest.skip(reason)
    script, path = tmp_path / "orders.py", tmp_path / "orders.pftrace"
    script.write_text(ORDERS)
    assert record_program(path, "--sched", "--io-waits", str(script)).status == 0
    with Command("view", "--offline", "--no-browser", "--port", "0", str(path)) as view:
        names = ui.first_screen(view.line_with("#!/?url="))
        ui.screenshot("ui-scheduling")
        assert {"CPU 0 Scheduling", "work", "load", "read"} <= set(names)
        states = ui.query(STATES)
        assert ["work", "Running"] in states  # On a busy machine, it is also runnable for long.
        assert ["load", "S"] in states
        assert ["load", "Running"] not in states
        assert ui.query(IN_LOAD) == [["read", "load"]]
        assert ui.query(ERRORS) == []
        assert view.interrupt() == 0


PICTURE = """
import asyncio, logging, threading
log = logging.getLogger("shop.cart")
async def pay():
    await asyncio.sleep(0.1)  # sleep: a wait to be seen
async def main():
    await asyncio.create_task(pay(), name="order 17")
def send():
    log.warning("order 17 is late")
    log.error("order 18 is lost")
mailer = threading.Thread(target=send, name="mailer")
mailer.start()
mailer.join()
asyncio.run(main())
raise KeyError("qty")
"""
NAMES = """
select p.name, p.pid, t.name, t.tid from thread t join process p using (upid)
where t.name = 'mailer' and p.cmdline like '%--loud'
"""
CALLS = """
select t.name, group_concat(s.name, ' > ') from (select * from slice order by ts, depth) s
join track t on t.id = s.track_id where t.name like 'pay (%'
"""


def has_text(ui: PerfettoUi, text: str) -> bool:
    ui.expand_all()  # again, because the UI collapses groups some time after it is ready
    return ui.page.get_by_text(text).count() > 0


def test_ui_shows_names_labels_task_lanes_log_records_and_exceptions(
    ui: PerfettoUi, tmp_path: Path
) -> None:
    script, trace = tmp_path / "shop.py", tmp_path / "picture.pftrace"
    script.write_text(PICTURE)
    assert record_program(trace, "--full", str(script), "--loud").status == 1
    with Command("view", "--offline", "--no-browser", "--port", "0", str(trace)) as view:
        ui.open(view.line_with("#!/?url="))
        ui.wait_for_trace()
        ((process, pid, thread, tid),) = ui.query(NAMES)
        assert (process, thread) == ("shop.py", "mailer")
        life = "order 17 > pay > asyncio.sleep > await"
        assert ui.query(CALLS) == [["pay (order 17)", life]]
        label, lane = "shop.py --loud", "pay (order 17)"
        for text in (f"{process} {pid}", label, f"{thread} {tid}", lane):
            wait_until(partial(has_text, ui, text), text)
            ui.page.get_by_text(text).first.scroll_into_view_if_needed()
        ui.screenshot("ui-task-lanes")
        ui.page.get_by_text("Android logs", exact=True).first.wait_for()
        ui.page.locator(".pf-split-panel__tab-title", has_text="Android Logs").click()
        for message in ("order 17 is late", "order 18 is lost", "KeyError: 'qty'"):
            ui.page.get_by_text(message).last.wait_for()
        ui.screenshot("ui-logs")
        assert view.interrupt() == 0


SHOP = """
def quote():
    pass  # the price is secret
def checkout():
    quote()
checkout()
"""
SHOWN = "() => window.app.trace.workspace.flatTracks.filter(t => t.expanded).map(t => t.name)"
SELECT = "id => window.app.trace.selection.selectSqlEvent('slice', id)"


def test_ui_opens_the_lanes_of_the_program_and_shows_the_source_of_a_function(
    ui: PerfettoUi, tmp_path: Path
) -> None:
    script, trace = tmp_path / "shop.py", tmp_path / "shop.pftrace"
    script.write_text(SHOP)
    assert record_program(trace, "--full", str(script)).status == 0
    with Command("view", "--offline", "--no-browser", "--port", "0", str(trace)) as view:
        ui.open(view.line_with("#!/?url="))
        ui.wait_for_trace()
        ((pid, name),) = ui.query("select pid, name from process where name is not null and pid")
        assert f"{name} {pid}" in ui.page.evaluate(SHOWN)
        assert name == "shop.py"
        ((quote,),) = ui.query("select id from slice where name = 'quote'")
        ui.page.evaluate(SELECT, quote)
        ui.page.get_by_text("the price is secret").first.wait_for()
        ui.screenshot("ui-source")
        assert view.interrupt() == 0


SAMPLED = """
import logging, time
def parse():
    for _ in range(10000):
        pass
def serve():
    parse()
logging.warning("started")
end = time.process_time() + 1
while time.process_time() < end:
    serve()
"""
SELECT_ALL = """() => {
  const trace = window.app.trace;
  const {start, end} = trace.traceInfo;
  const uris = trace.workspace.flatTracks.map(t => t.uri).filter(u => u && u.includes("perf"));
  trace.selection.selectArea({start, end, trackUris: uris});
  return uris;
}"""


def test_ui_shows_a_flame_graph_of_samples(ui: PerfettoUi, tmp_path: Path) -> None:
    script, trace = tmp_path / "shop.py", tmp_path / "samples.pftrace"
    script.write_text(SAMPLED)
    assert record_program(trace, "--sample", "1000hz", str(script)).status == 0
    with Command("view", "--offline", "--no-browser", "--port", "0", str(trace)) as view:
        ui.first_screen(view.line_with("#!/?url="))
        assert ui.page.evaluate(SELECT_ALL)
        ui.page.locator(".pf-flamegraph .pf-virtual-canvas").wait_for()
        ui.page.wait_for_function("[...drawnTexts].some(text => text.startsWith('parse'))")
        ui.screenshot("ui-samples")
        assert ui.query(ERRORS) == []
        assert view.interrupt() == 0


HEAP = """
kept = []
def parse(line):
    return line.split(",")
def load(count):
    for i in range(count):
        kept.append(parse(f"{i},name {i},{i * 7}"))
load(20000)
"""


def test_ui_shows_a_flame_graph_of_the_heap(ui: PerfettoUi, tmp_path: Path) -> None:
    script, trace = tmp_path / "shop.py", tmp_path / "heap.pftrace"
    script.write_text(HEAP)
    assert record_program(trace, "--heap=4k", str(script)).status == 0
    with Command("view", "--offline", "--no-browser", "--port", "0", str(trace)) as view:
        ui.first_screen(view.line_with("#!/?url="))
        # The UI selects the dump itself.
        ui.page.locator(".pf-flamegraph .pf-virtual-canvas").wait_for()
        for name in ("load", "parse"):
            ui.page.wait_for_function("name => [...drawnTexts].includes(name)", arg=name)
        ui.screenshot("ui-heap")
        assert ui.query(ERRORS) == []
        assert view.interrupt() == 0


NATIVE_HEAP = """
#include <stdlib.h>
#define NOINLINE __attribute__((noinline))
static void *kept[20000], **next = kept;
NOINLINE void read_row(size_t size) { *next++ = malloc(size); }
NOINLINE void load_table(void) { for (int i = 0; i < 9000; i++) read_row(1000); }
NOINLINE void build_index(void) { for (int i = 0; i < 9000; i++) *next++ = calloc(1, 400); }
int main(void) { load_table(); build_index(); return 0; }
"""


def test_ui_shows_a_flame_graph_of_malloc(ui: PerfettoUi, tmp_path: Path) -> None:
    source, trace = tmp_path / "shop.c", tmp_path / "malloc.pftrace"
    source.write_text(NATIVE_HEAP)
    if not shutil.which("cc"):
        pytest.skip("no C compiler")
    subprocess.run(["cc", "-O1", "-o", tmp_path / "shop", source], check=True)
    assert record_program(trace, "--native-heap=4k", str(tmp_path / "shop")).status == 0
    with Command("view", "--offline", "--no-browser", "--port", "0", str(trace)) as view:
        ui.first_screen(view.line_with("#!/?url="))
        # The UI selects the dump itself.
        ui.page.locator(".pf-flamegraph .pf-virtual-canvas").wait_for()
        for name in ("main", "load_table", "read_row", "build_index"):
            ui.page.wait_for_function("name => [...drawnTexts].includes(name)", arg=name)
        ui.screenshot("ui-native-heap")
        assert ui.query(ERRORS) == []
        assert view.interrupt() == 0


def test_ui_shows_the_object_graph(ui: PerfettoUi, tmp_path: Path) -> None:
    script, trace = tmp_path / "shop.py", tmp_path / "objects.pftrace"
    script.write_text(HEAP)
    assert record_program(trace, "--object-graph", str(script)).status == 0
    with Command("view", "--offline", "--no-browser", "--port", "0", str(trace)) as view:
        ui.first_screen(view.line_with("#!/?url="))
        # The UI selects the graph itself.
        ui.page.locator(".pf-flamegraph .pf-virtual-canvas").wait_for()
        for name in ("module __main__", "list"):
            ui.page.wait_for_function("name => [...drawnTexts].includes(name)", arg=name)
        ui.screenshot("ui-object-graph")
        assert ui.query(ERRORS) == []
        assert view.interrupt() == 0


@pytest.fixture
def bridge_port() -> Iterator[int]:
    """The fixed port that the UI connects to; a file lock reserves it for one test at a time."""
    with open("/tmp/stretto-bridge-port.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield PORT


@pytest.fixture
def sockets(tmp_path: Path) -> dict[str, str]:
    return {
        "PERFETTO_PRODUCER_SOCK_NAME": str(tmp_path / "producer"),
        "PERFETTO_CONSUMER_SOCK_NAME": str(tmp_path / "consumer"),
    }


def test_record_page_of_the_ui_records_with_stretto_service(
    ui: PerfettoUi, trace: Path, sockets: dict[str, str], bridge_port: int
) -> None:
    with Command("traced", environment=sockets):
        check_recording(ui, trace, sockets, bridge_port)
    ui.screenshot("ui-recorded")


@pytest.mark.skipif(
    reference_service.missing() is not None, reason=f"{reference_service.missing()}"
)
def test_record_page_of_the_ui_records_with_perfetto_service(
    ui: PerfettoUi, trace: Path, sockets: dict[str, str], bridge_port: int
) -> None:
    with reference_service.ReferenceService(*map(Path, sockets.values())):
        check_recording(ui, trace, sockets, bridge_port)


def check_recording(ui: PerfettoUi, trace: Path, sockets: dict[str, str], port: int) -> None:
    """Record a program with the service at the sockets, and check the trace."""
    with (
        Command("view", "--offline", "--no-browser", "--port", "0", str(trace)) as view,
        LiveProgram(PLAYER, environment=sockets) as player,
    ):
        home = view.line_with("#!/?url=").partition("/#!")[0]
        with Command("bridge", "--origin", home, environment=sockets) as bridge:
            bridge.line_with(f":{port}/traced")
            record(ui, home, player)
            assert bridge.interrupt() == 0
        assert ui.query("select name, count() from slice group by name order by name") == [
            ["move", 1000],
            ["round", 1000],
        ]
        assert ui.query(ERRORS) == []


def record(ui: PerfettoUi, home: str, player: LiveProgram) -> None:
    """Record the program by clicks in the UI, and open the trace."""
    page = ui.page
    ui.open(f"{home}/#!/record")
    page.locator(".platform-selector").get_by_text("Linux").click()
    page.locator(".record-targets select option", has_text="/traced").wait_for(state="attached")
    page.get_by_text("#producers: 1").wait_for()
    ui.screenshot("ui-record-target")
    page.locator('a[href="#!/record/config"]').click()
    page.locator("#max_duration").fill(HALF_AN_HOUR)
    page.locator('a[href="#!/record/track_event"]').click()
    page.locator("#track_event .pf-probe img").click()
    page.locator("#track_event .pf-probe textarea").first.fill("game")
    page.locator('a[href="#!/record/target"]').click()
    page.locator("button.start").click()
    page.locator("table.session-status tr", has_text="RECORDING").wait_for()
    player.wait_for("game.enabled")
    player.run("play(1000)")
    ui.screenshot("ui-recording")
    page.locator("button.stop").click()
    ui.wait_for_trace()
    ui.expand_all()
