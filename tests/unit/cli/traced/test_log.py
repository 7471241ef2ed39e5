"""The daemon's log limits the number of lines per period."""

from __future__ import annotations

from stretto.cli.traced.log import LINES_PER_PERIOD, PERIOD_S, Log


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_log_lines_start_with_the_program_name():
    lines: list[str] = []
    Log(lines.append).write("hello")
    assert lines == ["stretto traced: hello"]


def test_log_lines_above_the_limit_per_period_are_omitted_and_counted():
    lines: list[str] = []
    clock = Clock()
    log = Log(lines.append, clock)
    for _ in range(LINES_PER_PERIOD + 5):
        log.write("refused")
    assert len(lines) == LINES_PER_PERIOD
    clock.now = PERIOD_S
    log.write("again")
    assert lines[LINES_PER_PERIOD:] == [
        "stretto traced: 5 more messages were left out",
        "stretto traced: again",
    ]


def test_line_count_restarts_in_each_period():
    lines: list[str] = []
    clock = Clock()
    log = Log(lines.append, clock)
    for period in range(3):
        clock.now = period * PERIOD_S
        for _ in range(LINES_PER_PERIOD):
            log.write("x")
    assert lines == ["stretto traced: x"] * (3 * LINES_PER_PERIOD)
