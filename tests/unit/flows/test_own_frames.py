"""Wrappers of `stretto.flows` don't appear in tracebacks of the program."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from traceback import extract_tb
from typing import Any

import pytest

from stretto.flows import wsgi
from stretto.flows.asgi import FlowMiddleware
from stretto.flows.own_frames import without_own_frames


def frames(call: Callable[[], object], error: type[BaseException] = KeyError) -> list[str]:
    with pytest.raises(error) as caught:
        call()
    return [frame.name for frame in extract_tb(caught.value.__traceback__)][1:]


def fail(*_: object) -> Any:
    raise KeyError


async def fail_async(*_: object) -> None:
    await asyncio.sleep(0)
    fail()


def test_traceback_lacks_the_wrapper() -> None:
    def call() -> None:
        without_own_frames(fail)()

    assert frames(call) == ["call", "fail"]


def test_traceback_of_a_coroutine_lacks_the_wrapper() -> None:
    async def call() -> None:
        await without_own_frames(partial(fail_async))()

    assert frames(lambda: asyncio.run(call()))[-3:] == ["call", "fail_async", "fail"]


def test_traceback_lacks_the_middleware() -> None:
    async def call() -> None:
        await FlowMiddleware(fail_async)({"type": "http"}, fail, fail)

    assert frames(lambda: asyncio.run(call()))[-3:] == ["call", "fail_async", "fail"]
    assert frames(lambda: wsgi.FlowMiddleware(fail)({}, fail)) == ["<lambda>", "fail"]


def test_error_of_the_wrapper_itself_keeps_its_traceback() -> None:
    assert frames(lambda: without_own_frames(len)(), TypeError) == ["<lambda>", "run"]  # type: ignore[call-arg]
