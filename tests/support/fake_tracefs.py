"""A folder that looks like tracefs, with events and pages that a kernel has recorded."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

from stretto.probes.tracefs import Tracefs

RECORDED = Path(__file__).parents[1] / "unit/probes/tracefs"
FILES = {
    "current_tracer": "nop\n",
    "trace_clock": "[local] global boot\n",
    "buffer_size_kb": "7 (expanded: 1408)\n",
    "buffer_subbuf_size_kb": "4\n",
    "tracing_on": "1\n",
    "tracing_cpumask": "3\n",
    "set_event": "",
    "set_event_pid": "",
    "trace": "",
    "options/overwrite": "1\n",
    "options/event-fork": "0\n",
}


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
    return folder


class FakeTracefs(Tracefs):
    """Fills and empties the folders of instances as the kernel does."""

    def _make(self, path: str) -> None:
        super()._make(path)
        fill(Path(path))

    def remove(self, path: str) -> None:
        shutil.rmtree(path)
