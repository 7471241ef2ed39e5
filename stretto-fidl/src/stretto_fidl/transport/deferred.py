"""Lets handlers reply after they have returned."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from stretto_fidl.errors import FidlError
from stretto_fidl.transport.errors import DomainError

if TYPE_CHECKING:
    from collections.abc import Callable


class Deferred:
    """An object that a handler returns to reply later. Any thread may send the reply, once.

    If no thread replies, the caller waits until the channel is closed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answer: Callable[[Any, DomainError | None], object] | None = None
        self._given: tuple[Any, DomainError | None] | None = None

    def resolve(self, value: Any = None) -> None:
        """Reply with a payload. If the method has errors, this is the payload of success."""
        self._give(value, None)

    def reject(self, value: Any) -> None:
        """Reply with an error of the error type that the method declares."""
        self._give(None, DomainError(value))

    def _give(self, value: Any, error: DomainError | None) -> None:
        with self._lock:
            if self._given is not None:
                raise FidlError("this call has been answered already")
            self._given = (value, error)
            answer = self._answer
        if answer is not None:
            answer(value, error)

    def bind(self, answer: Callable[[Any, DomainError | None], object]) -> None:
        """Set the function that sends the reply.

        If the reply is known already, call the function now.

        Only servers call this method.
        """
        with self._lock:
            self._answer = answer
            given = self._given
        if given is not None:
            answer(*given)
