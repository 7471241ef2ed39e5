"""Import callbacks that were cancelled leave no import hook on `sys.meta_path`."""

from __future__ import annotations

import importlib
import sys

from stretto.profilers.on_import import stop_waiting, when_imported
from stretto.profilers.patch import Patch


def test_cancelled_import_callback_is_not_called(tmp_path, monkeypatch):
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


def test_patch_switched_off_before_the_import_leaves_no_import_hook():
    finders = list(sys.meta_path)
    patch = Patch("no_such_module", "function", lambda: None)
    patch.switch(True)
    assert sys.meta_path != finders
    patch.switch(False)
    patch.switch(False)
    assert sys.meta_path == finders
