"""A few examples of the fuzzer `python -m fidl_support.fuzz` pass."""

from __future__ import annotations

import pytest

from fidl_support import fuzz as fidl_fuzz

EXAMPLES = {"compiler": 150, "ir": 100, "decoder": 500, "memory": 15}


@pytest.mark.parametrize("target", fidl_fuzz.TARGETS)
def test_random_examples_of_the_fuzzer_pass(target: str) -> None:
    wrong = [found for seed in range(EXAMPLES[target]) if (found := fidl_fuzz.one(target, seed))]
    assert not wrong, wrong[0]


def test_fuzzer_prints_a_failing_example(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(_: object) -> object:
        yield "an example"
        raise ZeroDivisionError

    monkeypatch.setitem(fidl_fuzz.TARGETS, "crash", crash)
    found = fidl_fuzz.one("crash", 7)
    assert found is not None
    assert found.startswith("crash 7: an example\n")
    assert "ZeroDivisionError" in found
