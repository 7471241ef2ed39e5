"""Totals of auto detail: the recorder reads the values that a process has written."""

from __future__ import annotations

from pathlib import Path

from stretto.recorder.host.totals import FunctionTotals, read, read_all
from stretto.recorder.target.totals import MAX_FUNCTIONS, write

FUNCTION = ("shop.quote", "/app/shop.py", 7, 3, 30, 10, 20, 5)


def test_totals_are_equal_after_writing_and_reading(tmp_path: Path) -> None:
    off = ("odd\tname\n", "x.py", 1, None, 0, 1, 1, 1)
    write(str(tmp_path / "7"), {"functions": [off, FUNCTION], "shown": 5})
    totals = read(str(tmp_path / "7"))
    assert totals is not None
    assert totals.numbers == {"shown": 5}
    expected = [
        FunctionTotals("shop.quote", "/app/shop.py", 7, 3, 10, 20, 5),
        FunctionTotals("odd name", "x.py", 1, None, 1, 1, 1),
    ]
    assert [vars(each) for each in totals.functions] == [vars(each) for each in expected]


def test_totals_omit_functions_without_time_and_limit_the_number_of_functions(
    tmp_path: Path,
) -> None:
    functions = [(str(i), "x.py", 1, 1, 0, 0, i, 0) for i in range(MAX_FUNCTIONS + 5)]
    write(str(tmp_path / "7"), {"functions": functions[:1], "shown": 0})
    totals = read(str(tmp_path / "7"))
    assert totals is not None
    assert totals.functions == []
    write(str(tmp_path / "7"), {"functions": functions, "shown": 0})
    totals = read(str(tmp_path / "7"))
    assert totals is not None
    assert len(totals.functions) == MAX_FUNCTIONS


def test_files_of_totals_with_an_incomplete_line_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "1").write_text("shown\t1\nf\tx.py\n")
    (tmp_path / "2").write_text("shown\n")
    (tmp_path / "3").write_text("shown\t3")
    assert [totals.numbers for totals in read_all(str(tmp_path))] == [{"shown": 3}]


def test_missing_folder_of_totals_is_no_error_for_the_writer(tmp_path: Path) -> None:
    write(str(tmp_path / "gone" / "7"), {"functions": [], "shown": 1})
    assert read(str(tmp_path / "gone" / "7")) is None
