"""Import, queries and summary of traces, beside Perfetto's trace processor as WebAssembly.

    python bench/analysis.py [--json] [--rounds N] [--megabytes N] [--slices N] [--only TEXT]

import …       how fast a trace is imported into tables: small slices; slices with arguments; the
               start of Chromium, where Debian's package is installed; scheduling events; JSON
memory …       by how much the import increases the memory, relative to the size of the file
query …        analytical queries on five million slices
point …        queries for few rows of this trace
summary        `stretto summary` of a trace of 100 MB, relative to its limit of 3 s

The peer is the real trace processor v52, compiled to WebAssembly and run by wasmtime on one core,
already compiled when the measurement begins. Imports and the summary are measured in CPU time: the
importer uses one core. A native trace processor isn't measured here, because
the registries don't have one; it is faster. Each import runs in a process of its own; the sides
take turns. Figures are medians of all rounds.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import _traces

from tests.support import oracle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SUMMARY_LIMIT_S = 3.0
SUMMARY_MEGABYTES = 100
CHROMIUM_SECONDS = 4

IMPORT = """
import resource, sys, time
sys.path.insert(0, {root!r})
peak_mb = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
if {side!r} == "ours":
    from stretto.analysis.trace_tables import import_trace
    import_trace(b"\\n\\0")
    before, begin = peak_mb(), time.process_time()
    kept = import_trace({path!r})
    print(time.process_time() - begin, peak_mb() - before)
else:
    from tests.support import oracle
    processor = oracle.load("trace_processor").WasmTraceProcessor()
    size = lambda: processor.h.mem.data_len(processor.h.store) / 2**20
    before, used = size(), 0
    with open({path!r}, "rb") as file:
        while piece := file.read(16 << 20):
            begin = time.process_time()
            processor._send(request=1, append_trace_data=piece)
            used += time.process_time() - begin
    begin = time.process_time()
    processor._send(request=2)
    print(used + time.process_time() - begin, size() - before)
"""

QUERIES = {
    "names by number": "select name, count(*) n from slice group by name order by n desc, name",
    "names by time": "select name, sum(dur) s from slice group by name order by s desc",
    "longest": "select name, dur from slice order by dur desc, id limit 10",
    "threads": (
        "select thread.name, count(*), sum(slice.dur) from slice "
        "join thread_track on slice.track_id = thread_track.id join thread using (utid) "
        "group by thread.name order by 1"
    ),
    "histogram": "select dur / 10000 b, count(*) from slice group by b order by b limit 50",
    "depths": "select depth, avg(dur), max(dur) from slice group by depth order by depth",
    "self time": (
        "select p.name, sum(p.dur) - sum(c.s) from slice p join (select parent_id, sum(dur) s "
        "from slice where parent_id is not null group by parent_id) c on c.parent_id = p.id "
        "group by p.name order by 1"
    ),
    "callers": (
        "select p.name, c.name, count(*) n from slice c join slice p on c.parent_id = p.id "
        "group by 1, 2 order by n desc, 1, 2 limit 20"
    ),
    "timeline": (
        "select ts / 100000000 b, count(*), max(dur) from slice group by b order by b limit 100"
    ),
    "pattern": "select count(*), sum(dur) from slice where name glob '*_1?' and dur > 20000",
}

POINTS = {
    "by id": "select * from slice where id = 2500000",
    "parent": "select p.name from slice c join slice p on c.parent_id = p.id where c.id = 1234567",
    "children": "select id, name from slice where parent_id = 2000000",
    "ancestors": "select id, name from ancestor_slice(1500000)",
    "descendants": "select id, name from descendant_slice(1500000)",
    "time range": (
        "select id, name from slice where ts between 1000005000000 and 1000005100000 order by ts"
    ),
    "first": "select * from slice limit 10",
    "bounds": "select start_ts, end_ts from trace_bounds",
    "threads": "select utid, tid, name from thread",
    "track": (
        "select t.name, s.name from slice s join thread_track k on s.track_id = k.id "
        "join thread t using (utid) where s.id = 3000000"
    ),
}


def row(name: str, unit: str, ours: float, peer: float) -> dict[str, object]:
    figures = {"ours": round(ours, 2), "peer": round(peer, 2), "unit": unit}
    return {"name": name, **figures, "ratio": round(ours / peer, 3) if peer else 0.0}


def chromium(folder: Path) -> Path | None:
    """Return a trace of Chromium's start; None if Chromium isn't installed."""
    browser = shutil.which("chromium")
    if browser is None:
        print("analysis: no trace of Chromium: chromium isn't installed", file=sys.stderr)
        return None
    path = folder / "chromium"
    flags = f"""--headless --no-sandbox --disable-gpu --no-first-run --disable-sync
        --user-data-dir={folder / "profile"} --trace-startup=* --trace-startup-format=proto
        --trace-startup-file={path} --trace-startup-duration={CHROMIUM_SECONDS}
        --timeout={1000 * (CHROMIUM_SECONDS + 4)} --screenshot={folder / "screen.png"}""".split()
    subprocess.run([browser, *flags, "about:blank"], capture_output=True, check=False, timeout=60)
    return path if path.exists() else None


def traces(folder: Path, megabytes: int, wanted: str) -> Iterator[tuple[str, Path]]:
    """Make the traces one after the other."""
    makers: dict[str, tuple[Iterator[bytes], float]] = {
        "slices": (_traces.slices(with_args=False), 1),
        "arguments": (_traces.slices(with_args=True), 1),
        "ftrace": (_traces.ftrace(), 1),
        "JSON": (_traces.json_events(), 1.5),
    }
    for name, (pieces, factor) in makers.items():
        if wanted not in f"import {name}":
            continue
        path = folder / name
        _traces.write(path, pieces, int(megabytes * factor * 1e6))
        if name == "JSON":
            with path.open("ab") as file:
                file.write(_traces.JSON_END)
        yield name, path
        path.unlink()
    if wanted in "import Chromium" and (found := chromium(folder)):
        yield "Chromium", found


def imports(folder: Path, options: argparse.Namespace) -> Iterator[dict[str, object]]:
    """Measure the import of each trace."""
    for name, path in traces(folder, options.megabytes, options.only):
        figures: dict[str, list[tuple[float, float]]] = {"ours": [], "peer": []}
        for _ in range(options.rounds):
            for side, found in figures.items():
                root = str(Path(__file__).parents[1])
                code = IMPORT.format(root=root, side=side, path=str(path))
                output = subprocess.check_output([sys.executable, "-c", code], text=True)
                seconds, memory = map(float, output.split())
                found.append((seconds, memory))
        size = path.stat().st_size / 1e6
        speeds = [median(size / each[0] for each in found) for found in figures.values()]
        memory = [median(each[1] * 1.048576 / size for each in f) for f in figures.values()]
        yield row(f"import {name} ({size:.0f} MB)", "MB/s", *speeds)
        yield row(f"memory {name}", "x file", *memory)


def queries(folder: Path, options: argparse.Namespace) -> Iterator[dict[str, object]]:
    """Measure the queries, on both sides in turns."""
    from stretto.analysis import TraceProcessor

    cases = {f"query {n}": sql for n, sql in QUERIES.items()}
    cases |= {f"point {n}": sql for n, sql in POINTS.items()}
    cases = {name: sql for name, sql in cases.items() if options.only in name}
    if not cases:
        return
    path = folder / "slices"
    _traces.write(path, _traces.slices(with_args=False), int(options.slices * 46.5))
    ours, peer = TraceProcessor(path), oracle.Oracle(path.read_bytes())
    sides: list[Callable[[str], list[Any]]] = [lambda sql: ours.query(sql).fetchall(), peer.query]
    for name, sql in cases.items():
        figures: list[list[float]] = [[], []]
        answers = [_sorted(ask(sql)) for ask in sides]  # The first call isn't measured.
        if answers[0] != answers[1] and "select *" not in sql:
            print(f"analysis: the sides differ: {name}", file=sys.stderr)
        for _ in range(options.rounds):
            for ask, found in zip(sides, figures, strict=True):
                begin = time.perf_counter()
                ask(sql)
                found.append(1e3 * (time.perf_counter() - begin))
        yield row(name, "ms", *map(median, figures))


def _sorted(rows: list[Any]) -> list[str]:
    return sorted(map(repr, map(tuple, rows)))


def cpu_seconds() -> float:
    """Return the CPU time of all commands that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def summary(folder: Path, options: argparse.Namespace) -> Iterator[dict[str, object]]:
    """Measure `stretto summary`."""
    if options.only not in "summary":
        return
    path = folder / "summary"
    _traces.write(path, _traces.slices(with_args=True), SUMMARY_MEGABYTES * 1_000_000)
    seconds = []
    for _ in range(options.rounds):
        begin = cpu_seconds()
        subprocess.run(
            [sys.executable, "-m", "stretto", "summary", str(path)], check=True, capture_output=True
        )
        seconds.append(cpu_seconds() - begin)
    yield row("summary of 100 MB, by its limit", "s", median(seconds), SUMMARY_LIMIT_S)


def main() -> int:
    """Measure all rows and print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON object per row")
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each side")
    parser.add_argument("--megabytes", type=int, default=200, help="the size of a trace")
    parser.add_argument("--slices", type=int, default=5_000_000, help="the slices for queries")
    parser.add_argument("--only", default="", help="part of the names of the rows to measure")
    options = parser.parse_args()
    if reason := oracle.missing():
        print(f"analysis: nothing is measured: {reason}", file=sys.stderr)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        for measure in (imports, queries, summary):
            for line in measure(Path(folder), options):
                if options.json:
                    print(json.dumps(line), flush=True)
                else:
                    print("{name:34} {ours:>10} {peer:>10} {unit:7} x{ratio}".format(**line))
    return 0


if __name__ == "__main__":
    sys.exit(main())
