"""`stretto plot` draws each kind of picture."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import pytest

import stretto
from stretto.analysis.plots import KINDS
from stretto.cli.main import main
from tests.support.recorded_events import record
from tests.support.sample_packets import FAST, every, samples, trace_of

category = stretto.Category("test.plot")


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    with record() as recorded:
        for number in range(20):
            with category.slice("costs $5 and $6"), category.slice("inner"):
                category.counter("queue", number)
        category.begin("job", track=stretto.Track("lane"))
    path = tmp_path / "t.pftrace"
    path.write_bytes(recorded.trace)
    return str(path)


@pytest.fixture
def matplotlib() -> None:
    pytest.importorskip("matplotlib")


@pytest.mark.usefixtures("matplotlib")
@pytest.mark.parametrize("kind", KINDS)
def test_picture_is_drawn_as_png_and_svg(trace: str, kind: str) -> None:
    assert main(["plot", "--kind", kind, trace]) == 0
    assert Path("t.png").read_bytes().startswith(b"\x89PNG")
    assert main(["plot", "--kind", kind, "-o", "out.svg", trace]) == 0
    text = Path("out.svg").read_text()
    assert "<svg" in text
    assert "t.pftrace" in text or "<path" in text


@pytest.mark.usefixtures("matplotlib")
def test_counters_with_one_name_are_lines_of_their_owners_with_units(tmp_path: Path) -> None:
    from stretto.analysis.plots import draw
    from stretto.analysis.trace_tables import import_trace

    with record() as recorded:
        for name in ("first", "second"):
            track = stretto.Track(name)
            for value in (1_000_000, 2_000_000):
                category.counter("time", value, unit="ns", track=track)
    figure = draw(import_trace(recorded.trace), "counters", "t")
    assert [axes.get_ylabel() for axes in figure.axes] == ["ms", "ms"]
    assert [list(axes.lines[0].get_ydata()) for axes in figure.axes] == [[1, 2], [1, 2]]


@pytest.mark.usefixtures("matplotlib")
def test_number_of_counters_that_are_not_drawn_is_said() -> None:
    from stretto.analysis.plots import MAX_COUNTERS, draw
    from stretto.analysis.trace_tables import import_trace

    with record() as recorded:
        for number in range(MAX_COUNTERS + 3):
            category.counter(f"counter {number}", number)
    figure = draw(import_trace(recorded.trace), "counters", "t")
    assert len(figure.axes) == MAX_COUNTERS
    text = f"the {MAX_COUNTERS} counters with the most values, of {MAX_COUNTERS + 3}"
    assert figure.axes[0].get_title(loc="right") == text


@pytest.mark.usefixtures("matplotlib")
@pytest.mark.parametrize("shortest", [364_123_456, 1_000_000])
def test_longest_slice_is_in_the_histogram(shortest: int) -> None:
    from stretto.analysis.plots import draw
    from stretto.analysis.trace_tables import import_trace

    for longest in range(370_721_480, 370_721_500):  # Rounded edges are below some of these.
        with record() as recorded:
            for duration in (shortest, 366_000_000, longest):
                category.begin("slow", timestamp=1)
                category.end(timestamp=1 + duration)
        (axes,) = draw(import_trace(recorded.trace), "latency", "t").axes
        assert sum(bar.get_height() for bar in axes.patches) == 3
        assert axes.get_xscale() == ("log" if shortest == 1_000_000 else "linear")


@pytest.mark.usefixtures("matplotlib")
@pytest.mark.parametrize(
    ("durations", "labels"),
    [
        ([5_000, 70_000], ["5 µs", "10 µs", "20 µs", "50 µs"]),
        ([900, 2_000_000], ["1 µs", "10 µs", "100 µs", "1 ms"]),
        ([1, 10**13], ["1 ns", "10 ns", "100 ns", "1 µs", "10 µs", "100 µs", "1 ms", "10 ms",
                       "100 ms", "1 s", "10 s", "100 s", "1,000 s", "10,000 s"]),
    ],
)  # fmt: skip
def test_labels_of_durations_have_units_and_do_not_overlap(
    durations: list[int], labels: list[str]
) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from stretto.analysis.duration_plot import draw_histogram

    figure = Figure(layout="constrained", figsize=(10, 5))
    axes = figure.subplots()
    draw_histogram(axes, durations)
    FigureCanvasAgg(figure).draw()
    shown = [text for text in axes.get_xticklabels(which="both") if text.get_text()]
    assert [text.get_text() for text in shown] == labels
    boxes = [text.get_window_extent() for text in shown]
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))
    assert all(box.x0 >= 0 and box.x1 <= figure.bbox.x1 for box in boxes)
    assert axes.get_legend().get_window_extent().y0 >= axes.bbox.y1 - 1


@pytest.mark.usefixtures("matplotlib")
def test_damage_is_said(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("cut.pftrace").write_bytes(Path(trace).read_bytes()[:-3])
    assert main(["plot", "cut.pftrace"]) == 0
    assert "unread:" in capsys.readouterr().err


@pytest.mark.usefixtures("matplotlib")
def test_flame_graph_has_the_width_of_the_slices(trace: str) -> None:
    from stretto.analysis.plots import draw
    from stretto.analysis.trace_tables import import_trace

    figure = draw(import_trace(trace), "flame", "title", "inner")
    (axes,) = figure.axes
    (box,) = axes.collections
    (path,) = box.get_paths()
    assert path.get_extents().width == pytest.approx(axes.get_xlim()[1])


@pytest.mark.usefixtures("matplotlib")
@pytest.mark.parametrize("kind", KINDS)
def test_trace_without_such_a_name_is_refused(
    trace: str, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plot", "--kind", kind, "--name", "nothing", trace]) == 1
    assert "'nothing'" in capsys.readouterr().err
    assert not Path("t.png").exists()


@pytest.mark.usefixtures("matplotlib")
def test_counters_as_large_as_a_double_are_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stretto.analysis.plots import draw
    from stretto.analysis.trace_tables import import_trace

    with record() as recorded:
        for value in (1e308, -1e308, 2e307):
            category.counter("huge", value, unit="m")
    (axes,) = draw(import_trace(recorded.trace), "counters", "t").axes
    assert axes.get_ylabel() == "1e+100 m"
    assert list(axes.lines[0].get_ydata()) == pytest.approx([1e208, -1e208, 2e207])
    monkeypatch.chdir(tmp_path)
    Path("t.pftrace").write_bytes(recorded.trace)
    assert main(["plot", "--kind", "counters", "t.pftrace"]) == 0


_UNUSUAL = "job \N{GRINNING FACE} \0 \x1b[31m red \r \N{DEVANAGARI LETTER KA} \N{WORD JOINER}"


@pytest.mark.usefixtures("matplotlib")
@pytest.mark.parametrize("kind", KINDS)
def test_names_without_glyphs_or_with_controls_are_drawn_without_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    with record() as recorded, category.slice(_UNUSUAL):
        category.counter(_UNUSUAL, 1, unit=_UNUSUAL, track=stretto.Track(_UNUSUAL))
    monkeypatch.chdir(tmp_path)
    Path("t.pftrace").write_bytes(recorded.trace)
    assert main(["plot", "--kind", kind, "-o", "out.svg", "t.pftrace"]) == 0
    assert capsys.readouterr().err == ""
    assert "\x1b" not in Path("out.svg").read_text()


@pytest.mark.usefixtures("matplotlib")
def test_control_characters_in_a_picture_are_shown_as_numbers() -> None:
    from stretto.analysis.plots import draw
    from stretto.analysis.trace_tables import import_trace

    with record() as recorded, category.slice(_UNUSUAL):
        pass
    (axes,) = draw(import_trace(recorded.trace), "flame", "t").axes
    shown = [text.get_text() for text in axes.texts]
    assert [r"\x1b[31m red \x0d" in text for text in shown] == [True]


@pytest.mark.usefixtures("matplotlib")
def test_sources_of_samples_are_drawn_beside_each_other() -> None:
    from stretto.analysis.plots import draw
    from stretto.analysis.trace_tables import import_trace

    groups = (
        samples(every(1000, "python.cpu"), FAST, 4, first=10),
        samples(every(1000, "python.wall"), FAST, 5, first=20, sequence=2),
    )
    (axes,) = draw(import_trace(trace_of(*groups)), "flame", "t").axes
    shown = [text.get_text() for text in axes.texts]
    assert [text.partition(" ")[0] for text in shown] == [
        *("python.wall", "fast", "python.cpu", "fast")
    ]


def test_error_without_matplotlib_names_the_extra(
    trace: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["plot", trace]) == 1
    assert "stretto[plot]" in capsys.readouterr().err


def test_other_extension_is_refused(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plot", "-o", "x.pdf", trace]) == 2
    assert ".png or .svg" in capsys.readouterr().err
