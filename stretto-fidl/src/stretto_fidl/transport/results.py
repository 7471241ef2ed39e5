"""Converts payloads to the arguments of callers and handlers, and back.

The reply of a method that can't fail is its payload. The reply of a flexible or fallible method is
a union: `1` is success, `2` the method's own error, `3` an error of the FIDL framework. Callers and
handlers get success as a value, and errors as exceptions.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from stretto_fidl.bindings.numbers import FrameworkError
from stretto_fidl.bindings.printing import is_hidden
from stretto_fidl.bindings.protocols import TWO_WAY
from stretto_fidl.codec.headers import TransactionHeader
from stretto_fidl.codec.message import Message, decode_body, encode_message
from stretto_fidl.codec.types import Named
from stretto_fidl.errors import FidlError
from stretto_fidl.transport.errors import DomainError, UnknownMethodError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stretto_fidl.bindings.protocols import Method
    from stretto_fidl.transport.endpoint import Incoming

_SUCCESS = 1
_ERROR = 2
_FRAMEWORK = 3
_UNKNOWN_METHOD = struct.Struct("<QiHH")


def payload_of(cls: Any, name: str, payload: Any, members: Mapping[str, Any]) -> Any:
    """Return the payload that a caller gave, either as an object or by its members.

    Raises:
        TypeError: The caller gave both, or neither, or an object that isn't of the payload's class.
    """
    if cls is None:
        if payload is not None or members:
            raise TypeError(f"{name} takes no arguments")
        return None
    if payload is None:
        return cls(**members)
    if members:
        raise TypeError(f"{name} takes a payload or its members, not both")
    if not _is_of(cls, payload):
        raise TypeError(f"{name} takes a {cls.__name__} or its members, not {_kind_of(payload)}")
    return payload


def _is_of(cls: Any, value: Any) -> bool:
    """Return whether a value is of a class.

    If the library was loaded twice, the class of the other load counts, too.
    """
    if isinstance(value, cls):
        return True
    type_ = getattr(value, "TYPE", None)
    return isinstance(type_, Named) and type_.name == cls.TYPE.name


def _kind_of(value: Any) -> str:
    """Return the kind of a value, for an error message."""
    return "None" if value is None else f"an object of the class {type(value).__qualname__}"


def message_of(method: Method, txid: int, payload: Any) -> Message:
    """Return the message of a request, one-way method or event."""
    return encode_message(TransactionHeader(txid, method.ordinal, not method.strict), payload)


def numbered(message: Message, txid: int) -> Message:
    """Return the message with another transaction id."""
    return Message(struct.pack("<I", txid) + message.data[4:], message.handles)


def reply_of(method: Method, txid: int, value: Any) -> Message:
    """Return the reply for the value that a handler returned.

    Raises:
        FidlError: The value is not a payload of the method's reply.
    """
    if method.has_result:
        if method.success is not None:
            value = _answer(method, method.success, value)
        value = _variant(method, _SUCCESS, value)
    elif method.response is None and value is not None:
        problem = f"{method.name} answers with nothing"
        raise FidlError(f"{problem}, but its handler returned {_kind_of(value)}")
    elif method.response is not None:
        value = _answer(method, method.response, value)
    return message_of(method, txid, value)


def _answer(method: Method, cls: Any, value: Any) -> Any:
    """Return the payload that a handler returned.

    None stands for a payload without required members.
    """
    if value is None:
        try:
            return cls()
        except TypeError:
            pass
    if not _is_of(cls, value):
        problem = f"{method.name} answers with a {cls.__name__}"
        raise FidlError(f"{problem}, but its handler returned {_kind_of(value)}")
    return value


def error_reply_of(method: Method, txid: int, error: DomainError) -> Message:
    """Return the reply for a method's error that a handler raised.

    Raises:
        FidlError: The method has no errors.
    """
    if method.error is None:
        raise FidlError(f"{method.name} has no errors, but its handler raised one") from error
    return message_of(method, txid, _variant(method, _ERROR, error.value))


def unknown_reply_of(header: TransactionHeader) -> Message:
    """Return the reply to the call of an unknown flexible method."""
    reply = TransactionHeader(header.txid, header.ordinal, True)
    body = _UNKNOWN_METHOD.pack(_FRAMEWORK, FrameworkError.TYPE.values["UNKNOWN_METHOD"], 0, 1)
    return Message(reply.encode() + body, [])


def _variant(method: Method, ordinal: int, value: Any) -> Any:
    union = method.response
    names = {member.ordinal: member.python_name for member in union.TYPE.members}
    return union(**{names[ordinal]: value})


def _hides_error(method: Method) -> bool:
    members = {each.ordinal: each for each in method.response.TYPE.members}
    return "sensitive" in method.attributes or is_hidden(members[_ERROR])


def request_in(method: Method, incoming: Incoming) -> Any:
    """Decode the payload of a request or an event."""
    cls = method.request if method.kind != "event" else method.response
    return decode_body(incoming.header, cls, incoming.data, incoming.handles)


def reply_in(method: Method, incoming: Incoming) -> Any:
    """Decode a reply, and return its payload.

    Returns:
        The payload of the reply; for a method with errors, that of the success. None if there is
        no payload.

    Raises:
        DomainError: The method's own error.
        UnknownMethodError: The server's protocol doesn't have the method.
        WireError: The reply breaks FIDL's rules.
    """
    assert method.kind == TWO_WAY
    value = decode_body(incoming.header, method.response, incoming.data, incoming.handles)
    if not method.has_result or value.ordinal == _SUCCESS:
        return value.value if method.has_result else value
    if value.ordinal == _ERROR:
        raise DomainError(value.value, hidden=_hides_error(method))
    raise UnknownMethodError(f"the server doesn't know {method.name}")
