"""Every exception that Stretto raises, under one root.

A message says what was wrong and what to do about it. Lost trace data never raises
an exception: it is counted, and marked in the trace.
"""

from __future__ import annotations


class StrettoError(Exception):
    """Root of all errors of this package."""


class ConfigError(StrettoError, ValueError):
    """A configuration is malformed, unknown or out of range."""


class SessionError(StrettoError):
    """A tracing session was refused, ended early, or is used out of order."""


class TransportError(StrettoError, OSError):
    """A socket, file or shared memory could not be used."""


class ProtocolError(StrettoError):
    """A conversation broke the rules."""


class LocalProtocolError(ProtocolError):
    """This side broke them: a bug, or an API used out of order."""


class RemoteProtocolError(ProtocolError):
    """The peer broke them."""


class DecodeError(StrettoError, ValueError):
    """Bytes are malformed; the message carries the offset."""


class CommandError(StrettoError):
    """A command of the command line ends with `exit_code` (only `cli` raises it)."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code
