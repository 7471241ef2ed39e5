"""A folder that looks like tracefs, with events and pages that a kernel has recorded."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

from stretto.probes.tracefs import Tracefs

RECORDED = Path(__file__).parents[1] / "unit/probes/tracefs"
FILES = {
    "current_tracer": "nop\n",
    "available_tracers": "blk function_graph function nop\n",
    "set_ftrace_filter": "#### all functions enabled ####\n",
    "set_graph_function": "#### all functions enabled ####\n",
    "max_graph_depth": "0\n",
    "buffer_percent": "50\n",
    "trace_clock": "[local] global boot mono_raw\n",
    "buffer_size_kb": "7 (expanded: 1408)\n",
    "tracing_on": "1\n",
    "tracing_cpumask": "3\n",
    "set_event": "",
    "set_event_pid": "",
    "trace": "",
    "options/overwrite": "1\n",
    "options/event-fork": "0\n",
    "options/copy_trace_marker": "0\n",
}

KPROBES = "kprobe_events"
"""A file of the top folder only. Each line that is written to it defines or removes an event."""
FUNCTIONS = ("vfs_read", "vfs_write")
KPROBE_FORMAT = "name: {}\nID: {}\nformat:\n"
FIRST_KPROBE = 3000


def pages(cpu: int) -> bytes:
    return gzip.decompress((RECORDED / f"cpu{cpu}.pages.gz").read_bytes())


def text() -> str:
    """Return the recorded events in the text form that the kernel prints."""
    return gzip.decompress((RECORDED / "trace.txt.gz").read_bytes()).decode()


def fill(folder: Path) -> None:
    """Write the files of an instance; the kernel does this for a new folder."""
    shutil.copytree(RECORDED / "events", folder / "events", dirs_exist_ok=True)
    for event in folder.glob("events/*/*/format"):
        if event.parent.parent.name != "ftrace":
            (event.parent / "enable").write_text("0\n")
            (event.parent / "filter").write_text("none\n")
    for name, contents in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(contents)
    for cpu in (0, 1):
        cpu_folder = folder / f"per_cpu/cpu{cpu}"
        cpu_folder.mkdir(parents=True, exist_ok=True)
        (cpu_folder / "trace_pipe_raw").write_bytes(pages(cpu))
        shutil.copy(RECORDED / f"cpu{cpu}.stats", cpu_folder / "stats")


def mount(root: Path) -> Path:
    """Make a tracefs below a root folder; return its path."""
    folder = root / "sys/kernel/tracing"
    (folder / "instances").mkdir(parents=True)
    fill(folder)
    (folder / KPROBES).touch()
    return folder


class FakeTracefs(Tracefs):
    """Fills and empties folders as the kernel does."""

    def append(self, name: str, text: str) -> bool:
        if name != KPROBES:
            return super().append(name, text)
        kind, event = text.split()[0].split(":")
        folders = [Path(self.path), *Path(self.path, "instances").iterdir()]
        known = Path(self.path, "events", event).exists()
        if kind == "-":
            for folder in folders:
                shutil.rmtree(folder / "events" / event, ignore_errors=True)
            return known
        if known or text.split()[1] not in FUNCTIONS or not self.has(KPROBES):
            return False
        id_ = FIRST_KPROBE + len(list(Path(self.path).glob("events/stretto_*/*")))
        for folder in folders:
            (folder / "events" / event).mkdir(parents=True)
            (folder / "events" / event / "format").write_text(KPROBE_FORMAT.format(event, id_))
            (folder / "events" / event / "enable").write_text("0\n")
        return True

    def _make(self, path: str) -> None:
        super()._make(path)
        fill(Path(path))

    def remove(self, path: str) -> None:
        shutil.rmtree(path)
