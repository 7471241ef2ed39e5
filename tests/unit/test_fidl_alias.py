"""`stretto.fidl` without the distribution stretto-fidl."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from importlib.machinery import ModuleSpec

import pytest


@pytest.fixture
def without_stretto_fidl(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec

    def find_spec(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "stretto_fidl" else real(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)
    for loaded in [each for each in sys.modules if each.startswith("stretto.fidl")]:
        monkeypatch.delitem(sys.modules, loaded)


@pytest.mark.usefixtures("without_stretto_fidl")
@pytest.mark.parametrize("name", ["stretto.fidl", "stretto.fidl.codec"])
def test_missing_distribution_is_named_in_the_error(name: str) -> None:
    finders = list(sys.meta_path)
    with pytest.raises(ModuleNotFoundError, match="run `pip install stretto-fidl`") as raised:
        importlib.import_module(name)
    assert raised.value.name == "stretto_fidl"
    assert sys.meta_path == finders
