"""Waiting for an import leaves nothing behind when it is given up."""

from __future__ import annotations

import importlib
import sys

from stretto.profilers.on_import import stop_waiting, when_imported
from stretto.profilers.patch import Patch


def test_a_module_is_no_longer_awaited(tmp_path, monkeypatch):
    (tmp_path / "awaited_module.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    finders, seen = list(sys.meta_path), []
    when_imported("awaited_module", seen.append)
    other = []
    when_imported("awaited_module", other.append)
    stop_waiting("awaited_module", seen.append)
    module = importlib.import_module("awaited_module")
    del sys.modules["awaited_module"]
    assert (seen, other) == ([], [module])
    assert sys.meta_path == finders


def test_a_patch_that_is_switched_off_awaits_no_module():
    finders = list(sys.meta_path)
    patch = Patch("no_such_module", "function", lambda: None)
    patch.switch(True)
    assert sys.meta_path != finders
    patch.switch(False)
    patch.switch(False)
    assert sys.meta_path == finders
