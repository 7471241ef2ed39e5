"""`stretto diff` compares the self times of two traces or groups, and fails beyond a limit."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

import stretto
from stretto.cli.main import main
from tests.support.recorded import record as recorded
from tests.support.recorded_events import record

category = stretto.Category("test.diff")


def save(path: Path, handler_ns: list[int], other_ns: int = 50_000) -> str:
    """Save a trace: slices `request`, each with a slice `handler`, and one slice `rest`."""
    with record() as recorded:
        now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        track = stretto.Track("lane")
        for duration in [*handler_ns, 0]:
            outer = "request" if duration else "rest"
            category.begin(outer, track=track, timestamp=now)
            if duration:
                category.begin("handler", track=track, timestamp=now + 1000)
                category.end(track=track, timestamp=now + 1000 + duration)
            now += 2000 + duration + (0 if duration else other_ns)
            category.end(track=track, timestamp=now)
    path.write_bytes(recorded.trace)
    return str(path)


def diff(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, dict[str, object]]:
    assert main(["diff", "--format", "json", *arguments]) == 0
    return {row["name"]: row for row in json.loads(capsys.readouterr().out)["rows"]}


def steady(mean: int) -> list[int]:
    return [mean + i % 5 for i in range(20)]


def test_only_the_function_that_is_slower_changes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = save(tmp_path / "a", steady(10_000)), save(tmp_path / "b", steady(13_000))
    rows = diff(capsys, before, after)
    assert rows["handler"]["change"] == pytest.approx(0.3, abs=0.001)
    assert (rows["handler"]["is_noise"], rows["request"]["change"]) == (False, 0)


def test_caller_that_changes_by_what_is_inside_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = save(tmp_path / "a", steady(10_000)), save(tmp_path / "b", steady(13_000))
    assert main(["diff", before, after]) == 0
    table = capsys.readouterr().out.partition("Changed by the slices inside:")[2]
    lines = [line.split() for line in table.strip().splitlines()]
    assert [line[-2] for line in lines if line[-1] == "test.diff"] == ["request"]
    assert lines[2][0] == "+25.0%"
    row = diff(capsys, before, after)["request"]
    assert (row["total_before"], row["total_after"]) == (20 * 12_002, 20 * 15_002)


def test_caller_is_not_named_for_noise(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = save(tmp_path / "a", [10_000, 30_000] * 10)
    after = save(tmp_path / "b", [11_000, 33_000] * 10)
    assert main(["diff", before, after]) == 0
    assert "Changed by the slices inside" not in capsys.readouterr().out


def test_cpu_time_is_compared_if_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "works.py"
    script.write_text(
        "import sys, time\n"
        "def burn(seconds):\n"
        "    end = time.thread_time() + seconds\n"
        "    while time.thread_time() < end: pass\n"
        "def work():\n    burn(0.03); time.sleep(float(sys.argv[1]))\n"  # sleep: no CPU time
        "work()\n"
    )
    before, after = (str(tmp_path / name) for name in ("before.pftrace", "after.pftrace"))
    for path, seconds in ((before, "0.01"), (after, "0.2")):
        assert recorded(Path(path), "--full", "--cpu", str(script), seconds).status == 0
    rows = diff(capsys, "--cpu", before, after)
    assert rows["burn"]["before"] == pytest.approx(30_000_000, rel=0.2)
    assert abs(rows["work"]["after"] - rows["work"]["before"]) < 20_000_000  # type: ignore[operator]
    assert main(["diff", "--cpu", "--fail-above", "500%", before, after]) == 0


def test_change_within_three_standard_errors_is_noise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wide = [5_000, 40_000] * 10
    before, after = save(tmp_path / "a", wide), save(tmp_path / "b", [*wide[:-1], 50_000])
    assert diff(capsys, before, after)["handler"]["is_noise"] is True


def test_noise_of_fewer_than_five_calls_is_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = save(tmp_path / "a", [10_000]), save(tmp_path / "b", [20_000])
    assert diff(capsys, before, after)["handler"]["is_noise"] is None


def test_groups_are_compared_by_their_traces(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder, means in (("a", (100, 110, 105)), ("b", (108, 120, 130)), ("c", (300, 310, 320))):
        (tmp_path / folder).mkdir()
        for number, mean in enumerate(means):
            save(tmp_path / folder / f"{number}.pftrace", steady(mean))
    overlapping = diff(capsys, str(tmp_path / "a"), str(tmp_path / "b"))
    apart = diff(capsys, str(tmp_path / "a"), str(tmp_path / "c" / "*.pftrace"))
    assert (overlapping["handler"]["is_noise"], apart["handler"]["is_noise"]) == (True, False)


@pytest.mark.parametrize(("limit", "status"), [("20%", 1), ("40", 0)])
def test_growth_beyond_the_limit_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], limit: str, status: int
) -> None:
    before, after = save(tmp_path / "a", steady(10_000)), save(tmp_path / "b", steady(13_000))
    assert main(["diff", "--fail-above", limit, before, after]) == status
    assert ("handler +30.0%" in capsys.readouterr().err) == bool(status)


def test_all_time_does_not_grow_by_noise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = save(tmp_path / "a", [1000, 9000, 2000, 8000, 3000, 7000], other_ns=0)
    after = save(tmp_path / "b", [2000, 12_000, 4000, 11_000, 5000, 9000], other_ns=0)
    assert main(["diff", "--fail-above", "10%", before, after]) == 0
    assert "(+29.5%)" in capsys.readouterr().out


def calls(path: Path, parses: int, *, other_ns: int = 0) -> str:
    """Save a trace in which each of ten `handle` calls `parse`, and each of these `burn`."""
    events = []
    for start in range(0, 10_000_000, 1_000_000):
        events.append(("handle", start, 100_000 + parses * 50_000))
        for number in range(parses):
            events.append(("parse", start + 1000 + number * 50_000, 40_000 + other_ns))
            events.append(("burn", start + 2000 + number * 50_000, 30_000 + other_ns))
        events.append(("render", start + 10_000 + parses * 50_000, 50_000))
        events.append(("burn", start + 11_000 + parses * 50_000, 30_000))
    made = [
        {"ph": "X", "pid": 1, "tid": 1, "ts": start / 1000, "dur": duration / 1000, "name": name}
        for name, start, duration in events
    ]
    path.write_text(json.dumps(made))
    return str(path)


def test_caller_that_makes_more_calls_is_named_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = calls(tmp_path / "a.json", 4), calls(tmp_path / "b.json", 12)
    assert main(["diff", "--fail-above", "10%", before, after]) == 1
    failure = "handle +133.3%: it calls parse 3 times as often (burn +160.0%, parse +200.0%)."
    assert capsys.readouterr().err.endswith(failure + "\n")


def test_caller_whose_calls_take_longer_is_named_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = calls(tmp_path / "a.json", 4)
    after = calls(tmp_path / "b.json", 4, other_ns=8000)
    assert main(["diff", "--fail-above", "10%", before, after]) == 1
    failure = "parse +20.0%: its calls of burn take longer (burn +21.3%)."
    assert capsys.readouterr().err.endswith(failure + "\n")


def unended(path: Path, burn_us: int) -> str:
    """A slice that never ends, and whose calls of `burn` take `burn_us`; other calls take 100."""
    events: list[dict[str, object]] = [{"ph": "B", "ts": 0, "tid": 1, "name": "main"}]
    events.append({"ph": "X", "ts": 0, "dur": 9000, "tid": 2, "name": "other"})
    for call in range(5):
        start = {"ph": "X", "ts": 10 + call * 1000, "name": "burn"}
        events += [{**start, "dur": burn_us, "tid": 1}, {**start, "dur": 100, "tid": 2}]
    path.write_text(json.dumps([{**event, "pid": 1} for event in events]))
    return str(path)


def test_caller_that_never_ended_is_named_without_times(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = unended(tmp_path / "a.json", 100), unended(tmp_path / "b.json", 400)
    assert main(["diff", "--fail-above", "50%", before, after]) == 1
    assert "main: its calls of burn take longer (burn +150.0%)" in capsys.readouterr().err


def test_small_share_and_speedup_do_not_fail(tmp_path: Path) -> None:
    before = save(tmp_path / "a", steady(10), other_ns=10_000_000)
    after = save(tmp_path / "b", steady(20), other_ns=10_000_000)
    assert main(["diff", "--fail-above", "10%", before, after]) == 0
    assert main(["diff", "--fail-above", "10%", "--min-share", "0%", before, after]) == 1
    assert main(["diff", "--fail-above", "10%", "--min-share", "0%", after, before]) == 0


def test_table_shows_new_and_gone_slices(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = save(tmp_path / "a", []), save(tmp_path / "b", steady(10_000))
    assert main(["diff", before, after]) == 0
    assert main(["diff", after, before]) == 0
    lines = capsys.readouterr().out.splitlines()
    found = [tuple(line.split()[:2]) for line in lines if " handler " in line]
    assert [kind for kind, _ in found] == ["new", "gone"]


def test_files_of_a_folder_that_are_no_traces_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, notes = tmp_path / "traces", tmp_path / "traces" / "notes.txt"
    folder.mkdir()
    notes.write_text("hello")
    assert main(["diff", str(folder), str(folder)]) == 2
    assert "there is no trace" in capsys.readouterr().err
    before = save(folder / "a", steady(10_000))
    assert main(["diff", "--fail-above", "10%", str(folder), before]) == 0
    warning = f"stretto: diff: {str(notes)!r}: left out: it is no trace.\n"
    assert capsys.readouterr().err == warning
    assert main(["diff", str(notes), before]) == 1
    assert "it is no trace" in capsys.readouterr().err


def test_empty_traces_do_not_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = tmp_path / "empty.json"
    empty.write_text("[]")
    assert main(["diff", str(empty), str(empty)]) == 0
    assert "0 ns before, 0 ns after (+0.0%)" in capsys.readouterr().out


def test_negative_limit_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = save(tmp_path / "a", steady(10_000))
    assert main(["diff", "--limit", "-1", trace, trace]) == 2
    assert "--limit must be at least 0" in capsys.readouterr().err


def test_missing_trace_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", str(tmp_path / "none"), str(tmp_path / "none")]) == 2
    assert "there is no trace" in capsys.readouterr().err


DROPPED = [
    {"ph": "X", "pid": 1, "tid": 1, "ts": 15, "dur": 10_000, "name": "b"},  # Overlaps the first.
    {"ph": "X", "pid": 1, "tid": 1, "ts": 30, "name": "without dur"},
    {"ph": "S", "pid": 1, "tid": 1, "ts": 30, "id": 1, "name": "old"},
    {"ph": "?", "pid": 1, "tid": 1, "ts": 30, "name": "unknown"},
]


@pytest.mark.parametrize("dropped", DROPPED)
def test_json_whose_slices_are_dropped_is_no_success(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], dropped: dict[str, object]
) -> None:
    first = {"ph": "X", "pid": 1, "tid": 1, "ts": 10, "dur": 10, "name": "a"}
    whole, lacks = tmp_path / "whole.json", tmp_path / "lacks.json"
    whole.write_text(json.dumps([first, {**first, "ph": "N", "ts": 30}]))
    lacks.write_text(json.dumps([first, dropped]))
    assert main(["diff", "--fail-above", "10%", str(whole), str(whole)]) == 0
    assert capsys.readouterr().err == ""
    assert main(["diff", "--fail-above", "10%", str(whole), str(lacks)]) == 1
    first_line, last_line = capsys.readouterr().err.splitlines()
    assert first_line.startswith(f"stretto: diff: {str(lacks)!r}: unread: ")
    assert last_line.endswith(f"not all was compared, as said above: {lacks}.")


@pytest.mark.parametrize("kept", [0, 0.5])
def test_trace_that_is_empty_or_cut_off_is_no_success(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kept: float
) -> None:
    before = save(tmp_path / "a", steady(10_000))
    after = tmp_path / "b"
    whole = Path(before).read_bytes()
    after.write_bytes(whole[: int(len(whole) * kept)])
    assert main(["diff", before, str(after)]) == 0
    assert "unread: " in capsys.readouterr().err
    assert main(["diff", "--fail-above", "10%", before, str(after)]) == 1
    assert f"not all was compared, as said above: {after}." in capsys.readouterr().err
    assert main(["diff", "--fail-above", "10%", before, before]) == 0
