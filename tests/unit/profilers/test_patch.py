"""Observers of functions, and patches of modules that are imported later."""

from __future__ import annotations

import importlib
import inspect
import os
import pickle
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import create_autospec

import pytest

from stretto._pyhooks import Around
from stretto.profilers.on_import import when_imported
from stretto.profilers.patch import Patch


def divide(a: int, b: int = 1) -> float:
    """Return the quotient."""
    return a / b


class TestObservedFunction:
    def test_observers_get_arguments_and_result(self) -> None:
        seen: list[Any] = []

        def before(*args: Any, **kwargs: Any) -> str:
            seen.append((args, kwargs))
            return "token"

        around = Around(divide, before, lambda token, result: seen.append((token, result)))
        assert around(4, b=2) == 2.0
        assert seen == [((4,), {"b": 2}), ("token", 2.0)]

    def test_attributes_that_the_program_sets_are_those_of_the_function(self) -> None:
        def function() -> None: ...

        around: Any = Around(function, lambda: None)
        around.limit = 3
        assert (function.limit, around.limit) == (3, 3)  # type: ignore[attr-defined]
        del around.limit
        assert not hasattr(function, "limit")
        with pytest.raises(AttributeError):
            Around(len, lambda: None).limit = 3  # type: ignore[attr-defined]

    def test_exception_of_the_function_is_raised_unchanged(self) -> None:
        seen: list[Any] = []
        around = Around(divide, lambda *_: "token", lambda *args: seen.append(args))
        with pytest.raises(ZeroDivisionError) as caught:
            around(1, 0)
        assert seen == [("token", None)]
        frames = traceback.extract_tb(caught.value.__traceback__)
        assert [frame.name for frame in frames][1:] == ["divide"]

    def test_exceptions_raised_by_observers_are_ignored(self) -> None:
        def broken(*_args: Any) -> Any:
            raise RuntimeError

        assert Around(divide, broken, broken)(4, 2) == 2.0
        assert Around(divide, lambda *_: 1, broken)(4, 2) == 2.0
        with pytest.raises(ZeroDivisionError):
            Around(divide, lambda *_: 1, broken)(4, 0)

    def test_observer_after_a_call_runs_only_if_the_observer_before_the_call_returns_a_value(
        self,
    ) -> None:
        seen: list[Any] = []
        assert Around(divide, lambda *_: None, lambda *args: seen.append(args))(4, 2) == 2.0
        assert Around(divide, lambda *_: 1)(4, 2) == 2.0
        assert seen == []

    def test_wrapper_binds_to_an_object_like_a_function(self) -> None:
        class Thing:
            def me(self) -> object:
                return self

        vars_ = Thing.__dict__["me"]
        Thing.me = Around(vars_, lambda *_: None)  # type: ignore[method-assign]
        thing = Thing()
        assert thing.me() is thing
        assert Thing.me(thing) is thing

    def test_wrapper_has_the_attributes_of_the_function(self) -> None:
        around = Around(divide, lambda *_: None)
        assert (around.__name__, around.__doc__) == ("divide", "Return the quotient.")  # type: ignore[attr-defined]
        assert around.__wrapped__ is divide
        assert repr(around) == repr(divide)
        assert isinstance(around, Around)

    def test_wrapper_of_a_function_is_a_function_for_inspect_and_mock(self) -> None:
        around = Around(divide, lambda *_: None)
        assert inspect.isfunction(around)
        assert inspect.getsourcefile(around) == inspect.getsourcefile(divide)
        assert inspect.signature(around) == inspect.signature(divide)
        assert inspect.isbuiltin(Around(os.execv, lambda *_: None))
        made = create_autospec(around, return_value=3)
        assert type(made) is type(create_autospec(divide))
        assert made(4, b=2) == 3
        with pytest.raises(TypeError):
            made(4, c=2)

    def test_reference_cycle_through_a_wrapper_is_collected(self) -> None:
        import gc
        import weakref

        class Owner:
            pass

        owner = Owner()
        owner.around = Around(divide, lambda *_, kept=owner: kept)  # type: ignore[attr-defined]
        reference = weakref.ref(owner)
        del owner
        gc.collect()
        assert reference() is None


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return the name of a module that was not imported yet."""
    name = "stretto_test_module"
    (tmp_path / f"{name}.py").write_text("class Thing:\n    def value(self):\n        return 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield name
    sys.modules.pop(name, None)


class TestWhenImported:
    def test_callback_for_an_imported_module_runs_at_once(self) -> None:
        seen: list[object] = []
        when_imported("pickle", seen.append)
        assert seen == [pickle]

    def test_callback_for_a_module_not_yet_imported_runs_at_its_import(self, module: str) -> None:
        seen: list[object] = []
        before = list(sys.meta_path)
        when_imported(module, seen.append)
        assert seen == []
        imported = importlib.import_module(module)
        assert seen == [imported]
        assert sys.meta_path == before
        assert imported.__spec__ is not None
        assert type(imported.__loader__).__module__ != "stretto.profilers.on_import"
        assert imported.__spec__.loader is imported.__loader__

    def test_imports_of_unwatched_modules_are_not_affected(self, module: str) -> None:
        when_imported("stretto_never_imported", print)
        assert importlib.import_module(module).Thing().value() == 1
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("stretto_not_there")


class TestPatch:
    def test_patch_can_be_switched_repeatedly(self, module: str) -> None:
        seen: list[object] = []
        patch = Patch(module, "Thing.value", seen.append)
        patch.switch(True)
        thing = importlib.import_module(module).Thing()
        assert thing.value() == 1
        assert seen == [thing]
        patch.switch(False)
        assert thing.value() == 1
        assert seen == [thing]
        assert not isinstance(vars(type(thing))["value"], Around)
        patch.switch(True)
        assert thing.value() == 1
        assert seen == [thing, thing]

    @pytest.mark.parametrize("owner", [sys, threading])
    def test_default_hook_stays_identical_to_the_hook(
        self, owner: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        default = owner.__excepthook__
        monkeypatch.setattr(owner, "excepthook", default)
        patch = Patch(owner.__name__, "excepthook", lambda *_: None)
        patch.switch(True)
        assert isinstance(owner.excepthook, Around)
        assert owner.excepthook is owner.__excepthook__
        patch.switch(False)
        assert owner.excepthook is owner.__excepthook__ is default

    def test_default_hook_stays_if_the_program_has_replaced_the_hook(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        default = sys.__excepthook__
        monkeypatch.setattr(sys, "excepthook", lambda *_: None)
        patch = Patch("sys", "excepthook", lambda *_: None)
        patch.switch(True)
        assert sys.__excepthook__ is default
        patch.switch(False)

    def test_patch_switched_off_before_the_import_changes_nothing(self, module: str) -> None:
        seen: list[object] = []
        patch = Patch(module, "Thing.value", seen.append)
        patch.switch(True)
        patch.switch(False)
        assert importlib.import_module(module).Thing().value() == 1
        assert seen == []

    def test_wrapper_of_another_tool_is_not_removed(self, module: str) -> None:
        patch = Patch(module, "Thing.value", lambda *_: None)
        patch.switch(True)
        cls = importlib.import_module(module).Thing
        ours = vars(cls)["value"]

        def theirs(self: object) -> int:
            return ours.__get__(self)() + 1

        cls.value = theirs
        patch.switch(False)
        assert vars(cls)["value"] is theirs
        patch.switch(True)
        assert cls().value() == 2
