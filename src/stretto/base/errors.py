"""All exceptions that Stretto raises, below one root class.

A message says what was wrong and what to do about it. Lost trace data never raises an exception: it
is counted, and marked in the trace.
"""

from __future__ import annotations


class StrettoError(Exception):
    """The root of all errors of this package."""


class ConfigError(StrettoError, ValueError):
    """A configuration is malformed, unknown or out of range."""


class SessionError(StrettoError):
    """A tracing session was refused, ended early, or is used out of order."""


class TransportError(StrettoError, OSError):
    """A socket, file or shared memory could not be used."""


class ProtocolError(StrettoError):
    """A peer or this side violated a protocol."""


class LocalProtocolError(ProtocolError):
    """This side violated a protocol: a bug, or calls in the wrong order."""


class RemoteProtocolError(ProtocolError):
    """The peer violated a protocol."""


class DecodeError(StrettoError, ValueError):
    """Bytes are malformed; the message contains the offset."""


class CommandError(StrettoError):
    """A verb of the command line failed with `exit_code`. Only `cli` raises it."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code
