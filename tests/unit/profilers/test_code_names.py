"""Names of slices: module and function, as a reader of the program knows them."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest

import stretto
from stretto.base.errors import ConfigError
from stretto.profilers.code_names import code_name
from stretto.profilers.folded_code import is_folded, is_starter
from stretto.profilers.functions import FunctionOptions
from tests.support.call_slices import recorded


def function(name: str, path: str = "/srv/shop.py") -> CodeType:
    return function.__code__.replace(co_qualname=name, co_name=name, co_filename=path)


def body(path: str) -> CodeType:
    return compile("", path, "exec")


CLASS = next(c for c in compile("class A: pass", "a.py", "exec").co_consts if hasattr(c, "co_name"))


@pytest.mark.parametrize(
    ("code", "module", "name"),
    [
        (function("Cart.total"), "shop.views", "shop.views.Cart.total"),
        (function("total"), "__main__", "total"),
        (function("total"), "__mp_main__", "total"),
        (function("total"), None, "total"),
        (asyncio.run.__code__, "asyncio.runners", "asyncio.run"),
        (asyncio.Queue.get.__code__, "asyncio.queues", "asyncio.Queue.get"),
        (asyncio.Runner.run.__code__, "asyncio.runners", "asyncio.Runner.run"),
        (json.JSONDecoder.decode.__code__, "json.decoder", "json.JSONDecoder.decode"),
        (function("run"), "asyncio.nowhere", "asyncio.nowhere.run"),
        (body(json.decoder.__file__), "json.decoder", "import json.decoder"),
        (body("/lib/xdist/remote.py"), "__channelexec__", "remote.py"),
        (body("<remote exec>"), "__channelexec__", "<remote exec>"),
        (body("/srv/settings.py"), "json.decoder", "settings.py"),
        (body("/srv/settings.py"), None, "settings.py"),
        (body("/srv/shop.py"), "__main__", "shop.py"),
        (body("/srv/shop.py"), "__mp_main__", "shop.py"),
        (body("<frozen runpy>"), "runpy", "import runpy"),
        (body("<string>"), "__main__", "<module>"),
        (body("<string>"), "namedtuple_P", "namedtuple_P.<module>"),
    ],
)
def test_name_has_the_module_from_which_users_import_the_function(
    code: CodeType, module: str | None, name: str
) -> None:
    assert code_name(code, module) == name


def test_naming_does_not_load_a_lazy_module(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lazy(ModuleType):
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(name)

    monkeypatch.setitem(sys.modules, "lazy", Lazy("lazy"))
    monkeypatch.setitem(sys.modules, "lazy.part", Lazy("lazy.part"))
    assert code_name(function("work"), "lazy.part") == "lazy.part.work"


@pytest.mark.parametrize(
    ("code", "module", "folded", "off"),
    [
        (function("checkout"), "shop", False, False),
        (function("_find_and_load"), "importlib._bootstrap", True, True),
        (function("_find_and_load"), "_frozen_importlib", True, True),
        (function("version"), "importlib.metadata", False, False),
        (function("Thread._bootstrap_inner"), "threading", True, True),
        (function("Thread.run"), "threading", True, True),
        (function("Thread.join"), "threading", False, False),
        (function("BaseEventLoop._run_once"), "asyncio.base_events", True, True),
        (function("Runner.run"), "asyncio.runners", True, True),
        (function("run"), "asyncio.runners", False, False),
        (function("sleep"), "asyncio.tasks", False, False),
        (function("_run_code"), "runpy", True, True),
        (CLASS, "shop", True, True),
        (body("/srv/cart.py"), "cart", False, True),
        (body("/srv/shop.py"), "__main__", False, False),
        (body("<string>"), "__main__", False, False),
    ],
)
def test_machinery_of_imports_threads_and_event_loops_is_folded(
    code: CodeType, module: str, folded: bool, off: bool
) -> None:
    results = [is_folded(code, module, imports) for imports in ("full", "folded", "off")]
    assert results == [False, folded, off]


def test_command_of_a_spawned_worker_is_folded() -> None:
    worker = "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5)"
    own = "from multiprocessing import Pool; Pool().close()"
    codes = [compile(text, "<string>", "exec") for text in (worker, own)]
    assert [is_folded(code, "__main__", "folded") for code in codes] == [True, False]
    assert not is_folded(codes[0], "__main__", "full")


def test_function_that_calls_the_target_of_a_thread_is_a_starter() -> None:
    assert is_starter(function("Thread.run"), "threading")
    assert not is_starter(function("Thread.join"), "threading")
    assert not is_starter(function("Thread.run"), "shop")


def test_unknown_mode_of_imports_is_refused() -> None:
    with pytest.raises(ConfigError, match="full, folded, off"):
        FunctionOptions(imports="none")


def test_recorded_slices_have_these_names(
    function_options: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shelf.py").write_text("class Book: pass\ndef read(): pass\nread()\n")
    monkeypatch.syspath_prepend(tmp_path)
    function_options(include=["shelf", "importlib"], imports="folded")
    with recorded("python.functions") as result:
        __import__("shelf")
    assert result.calls() == [("import shelf", [("shelf.read", [])])]


def test_traced_function_keeps_its_own_name(function_options: Callable[..., None]) -> None:
    category = stretto.Category("test.names")

    @category.traced
    def bake() -> None:
        pass

    @category.traced
    async def serve() -> None:
        pass

    with recorded("python.functions", category.name) as result:
        for _ in range(3000):  # several chunks, each of which names the functions again
            bake()
            with pytest.raises(StopIteration):
                serve().send(None)
    names = {event.name for event in result.events if category.name in event.categories}
    assert names == {bake.__wrapped__.__qualname__, serve.__wrapped__.__qualname__}
