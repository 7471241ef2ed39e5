"""Measures the cost of an event in Stretto and in other tracing libraries.

    python bench/track_event.py [--json] [--rounds N]

Each library runs in its own process. Each round measures all libraries, so a change of the
machine's speed affects all of them. Figures are medians over the rounds, in ns of the calling
thread's CPU time. For traced calls, `call_bytes` is the size of a call in the file, and
`call_saving` is the time to save the file, per call. Rows are named operation/peer; the peer
`clock` is one read of the trace clock in a C loop, measured in the same rounds. `target` is the
maximum of `ratio`. Peers that are not installed are reported and have no rows. The rows for
f-strings and `@traced` include the time to make the string and to call the function.

The target that is missed, on CPython 3.12, in clocks (medians of paired rounds):

    row                       figure  target  reason
    instant_f_string_name     5.8     4.0     making the string alone takes 5.0 (row `f_string`)
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

HERE = Path(__file__).parent
PEERS = (
    "viztracer",
    "viztracer_functions",
    "viztracer_saving",
    "perfetto_builder",
    "opentelemetry",
    "nvtx",
    "perfnetto",
)
OURS = ("stretto", "stretto_disabled", "stretto_functions", "stretto_saving")
PY313 = sys.version_info >= (3, 13)
PY312 = sys.version_info >= (3, 12)

CLOCK_TARGETS = {
    "instant": 1.3,
    "instant_in_task": 1.3,
    "slice": 6.5 if PY313 else 5.0,
    "instant_2_ints": 1.8,
    "instant_8_ints": 4.0,
    "instant_200_characters": 2.5,
    "instant_f_string_name": 4.0,
    "instant_on_track": 1.8,
    "instant_with_flow": 1.8,
    "counter": 1.6,
    "traced": 6.0,
    "instant_2_sessions": 1.8,
    "instant_5_sessions": 4.0,
}
"""In clocks (design, section 4)."""

Rows = list[dict[str, object]]


def compile_clock(folder: str) -> list[str]:
    """Return the command that measures the time of a clock read."""
    program = str(Path(folder) / "clock")
    subprocess.run(["cc", "-O2", "-o", program, str(HERE / "_clock.c")], check=True)
    return [program]


def measure(command: list[str]) -> dict[str, float] | str:
    """Return the figures of a worker process, or the reason why it has none."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["failed"])[-1]
    return json.loads(done.stdout.strip().splitlines()[-1])


def run_rounds(rounds: int) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
    """Return ({library: {operation: median ns}}, {library: the reason why it is missing})."""
    figures: dict[str, dict[str, list[float]]] = {}
    missing: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        commands = {"clock": compile_clock(folder)}
        for name in (*OURS, *PEERS):
            commands[name] = [sys.executable, str(HERE / "_workers.py"), name]
        for number in range(rounds):
            for name, command in commands.items():
                if name in missing:
                    continue
                result = measure(command)
                if isinstance(result, str):
                    missing[name] = result
                    continue
                for operation, ns in result.items():
                    figures.setdefault(name, {}).setdefault(operation, []).append(ns)
            print(f"round {number + 1} of {rounds}", file=sys.stderr)
    medians = {
        name: {operation: median(values) for operation, values in operations.items()}
        for name, operations in figures.items()
    }
    return medians, missing


def row(
    name: str, ours: float, peer: float, target: float | None = None, unit: str = "ns"
) -> dict[str, object]:
    """Return one row of the table."""
    return {
        "name": name,
        "ours": round(ours, 2),
        "peer": round(peer, 2),
        "unit": unit,
        "ratio": round(ours / peer, 3),
        "target": target,
    }


def make_rows(figures: dict[str, dict[str, float]]) -> Rows:
    """Return the rows that compare ours with each peer, for each operation."""
    ours, off, calls, saved = (figures[name] for name in OURS)
    clock = figures["clock"]["clock"]
    rows = [row(f"{name}/clock", ours[name], clock, top) for name, top in CLOCK_TARGETS.items()]
    rows.append(row("f_string/clock", off["f_string"], clock))
    rows.append(row("disabled_instant/empty", off["disabled_instant"], off["empty"], 1.3))
    rows.append(row("disabled_slice/empty", off["disabled_slice"], off["empty_slice"], 1.2))
    if peer := figures.get("viztracer_functions"):
        target = 0.8 if PY312 else 1.0
        rows += [
            row(f"{name}/viztracer", calls[name], peer[name], target)
            for name in ("function_call", "functions_100")
        ]
    if peer := figures.get("viztracer_saving"):
        plain, packed = saved["call_bytes"], saved["call_bytes_compressed"]
        rows += [
            row("call_bytes/viztracer", plain, peer["call_bytes"], 0.333, "B"),
            row("call_bytes_compressed/viztracer", packed, peer["call_bytes"], 0.1, "B"),
            row("call_saving/viztracer", saved["call_saving"], peer["call_saving"], 0.1),
        ]
    for name in ("viztracer", "perfetto_builder", "opentelemetry", "perfnetto"):
        for operation, ns in figures.get(name, {}).items():
            rows.append(row(f"{operation}/{name}", ours[operation], ns))
    if peer := figures.get("nvtx"):
        rows.append(row("disabled_slice/nvtx", off["disabled_slice"], peer["disabled_slice"]))
    return rows


def main() -> int:
    """Measure and print all rows; return 1 if Stretto could not be measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON object per row")
    parser.add_argument("--rounds", type=int, default=5, help="rounds through all libraries")
    options = parser.parse_args()
    figures, missing = run_rounds(options.rounds)
    for name, why in missing.items():
        print(f"left out {name}: {why}", file=sys.stderr)
    if any(name in missing for name in (*OURS, "clock")):
        return 1
    for line in make_rows(figures):
        if options.json:
            print(json.dumps(line))
        else:
            goal = f"  (target {line['target']})" if line["target"] else ""
            figures_text = f"{line['ours']:>9} {line['peer']:>9} {line['unit']:2}"
            print(f"{line['name']:32} {figures_text}  x{line['ratio']}{goal}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
