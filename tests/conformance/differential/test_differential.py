"""Stretto's and Perfetto's v56 service give equal results for random operations.

STRETTO_DIFFERENTIAL is the number of sequences, STRETTO_DIFFERENTIAL_FIRST the first seed.
A sequence with different results is shortened, and printed with the differences.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.conformance.differential import services
from tests.conformance.differential.compare import Pair, shortened
from tests.conformance.differential.generator import Generator
from tests.support import newer_debian

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conformance.differential.session import Sequence

SEQUENCES = int(os.environ.get("STRETTO_DIFFERENTIAL", "200"))
FIRST = int(os.environ.get("STRETTO_DIFFERENTIAL_FIRST", "0"))

pytestmark = [pytest.mark.thorough, pytest.mark.once]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    if reason := newer_debian.missing():
        pytest.skip(reason)
    with services.ours(tmp_path / "o") as ours, services.perfetto(tmp_path / "p") as theirs:
        yield Pair(ours, theirs)


def test_both_services_give_the_same_results(
    pair: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    made: Counter[str] = Counter()
    for seed in range(FIRST, FIRST + SEQUENCES):
        generator = Generator(seed)
        sequence = generator.make()
        made += generator.made
        differences = pair.run(sequence)
        if differences:
            pytest.fail(report(pair, seed, sequence, differences))
    least = 1000 if SEQUENCES >= 2000 else SEQUENCES // 4
    assert min(made.values()) >= least, made
    assert pair.cut <= SEQUENCES // 25 + 1
    with capsys.disabled():
        print(f"\n{SEQUENCES} sequences of {made.total()} operations: no difference")


def report(pair: Pair, seed: int, sequence: Sequence, first: list[str]) -> str:
    """Return a report of the shortened sequence.

    If the shortened sequence has no differences, a race caused the differences of the original.
    """
    short = shortened(pair, sequence)
    lines = [f"seed {seed}", *first, "shortened:", str(short.buffers), str(short.producers)]
    lines += map(json.dumps, short.operations)
    return "\n".join(line[:1000] for line in lines + pair.run(short))
