"""The error of all functions."""

from __future__ import annotations

from stretto.base.errors import StrettoError


class PerfettoException(StrettoError):  # noqa: N818  # the name of the package perfetto
    """A trace or a query is wrong."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
