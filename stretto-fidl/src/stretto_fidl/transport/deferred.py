"""A reply that comes when its handler has returned already."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from stretto_fidl.errors import FidlError
from stretto_fidl.transport.errors import DomainError

if TYPE_CHECKING:
    from collections.abc import Callable


class Deferred:
    """What a handler returns to answer later, from any thread, once.

    A call that is never answered waits until the channel is closed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answer: Callable[[Any, DomainError | None], object] | None = None
        self._given: tuple[Any, DomainError | None] | None = None

    def resolve(self, value: Any = None) -> None:
        """Answer with a payload, or with that of the success."""
        self._give(value, None)

    def reject(self, value: Any) -> None:
        """Answer with the method's own error."""
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
        """For the server: call this with the answer, now or later."""
        with self._lock:
            self._answer = answer
            given = self._given
        if given is not None:
            answer(*given)
