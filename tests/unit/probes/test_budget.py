from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from stretto.probes.budget import BURST_NS, SHARE, Budget
from stretto.probes.probe import SLOW, Probe
from tests.support.probing import Probing

MS = 1_000_000


class Costly(Probe):
    """Its samples take a CPU time that the test sets."""

    name = "test.costly"
    cost_ms = 0
    taken = 0

    def start(self) -> None:
        self._poll = self.poll({"all": 10}, lambda _due: self._take(), Budget())

    def stop(self) -> None:
        self._poll.stop()

    def _take(self) -> None:
        self.taken += 1
        if self.cost_ms:
            session.cpu_ns += self.cost_ms * MS


session: Probing[Costly]


def start(root: Path) -> Probing[Costly]:
    global session  # Its source adds to its CPU time
    session = Probing(Costly, root)
    return session


def notes(root: Probing[Costly], milliseconds: float) -> list[str]:
    events = [packet.track_event for packet in root.advance(milliseconds)]
    return [event.name for event in events if event is not None]


def test_samples_within_the_budget_are_not_postponed(tmp_path: Path) -> None:
    probing = start(tmp_path)
    assert notes(probing, 1000) == []
    assert probing.source.taken == 101


def test_costly_samples_take_a_twentieth_of_a_cpu_and_the_trace_says_so(tmp_path: Path) -> None:
    probing = start(tmp_path)
    probing.source.cost_ms = 5
    assert notes(probing, 60_000) == [SLOW]
    assert (60_000 - 500) / SHARE < 5 * probing.source.taken <= 60_000 / SHARE + 55


def test_periods_are_as_asked_when_samples_are_cheap_again(tmp_path: Path) -> None:
    probing = start(tmp_path)
    probing.source.cost_ms = 20
    assert notes(probing, 10_000) == [SLOW]
    probing.source.cost_ms = 0
    probing.advance(1_000)
    before = probing.source.taken
    assert notes(probing, 1_000) == []
    assert probing.source.taken - before == 100
    probing.source.cost_ms = 20
    assert notes(probing, 10_000) == [SLOW]


def test_stopped_session_is_not_sampled_again(tmp_path: Path) -> None:
    probing = start(tmp_path)
    probing.source.cost_ms = 500
    probing.advance(20)
    probing.source.on_stop()
    before = probing.source.taken
    probing.advance(60_000)
    assert probing.source.taken == before


@given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9))), st.integers(1, 64))
def test_samples_that_wait_keep_the_share(rows: list[tuple[int, int]], cpus: int) -> None:
    """Each row has a pause beyond the wait, and the CPU time of a sample, in ns."""
    budget = Budget(cpus)
    now = used = last = 0
    for pause, cost in rows:
        now += pause
        used, last = used + cost, cost
        now += budget.spend(now, cost) + 1
    assert used - last <= now * cpus / SHARE + BURST_NS + 1
