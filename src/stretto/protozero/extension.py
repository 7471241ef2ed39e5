"""Extensions: fields that one schema adds to a message of another.

A generated module has an `Extension` for each, in the module or in the message
that its declaration stands in. Value classes and decoders take it as a key::

    event[chrome.latency] = chrome.Latency(trace_id=7)
    if chrome.latency in event: ...
    event[chrome.latency].trace_id

and what it appends to a writer goes through it::

    chrome.frame_number.append(event_writer, 3)
    with chrome.latency.open(event_writer) as latency: ...

Importing the module that declares an extension makes it known: messages that
were decoded before keep it among their unknown fields.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from stretto.base.errors import ConfigError
from stretto.protozero.codec import MessageCodec
from stretto.protozero.field import Field, RepeatedField
from stretto.protozero.writer import MessageWriter

Value = TypeVar("Value")
Writer = TypeVar("Writer", bound=MessageWriter)


class Extension(Generic[Value, Writer]):
    """One extension.

    Attributes:
        name: its full name, with the package.
        extendee: `MODULE/PATH` of the message class that it extends.
        field: how it is encoded.
    """

    __slots__ = ("extendee", "field", "name")

    def __init__(self, name: str, extendee: str, field: Field) -> None:
        self.name = name
        self.extendee = extendee
        self.field = field

    def append(self, writer: MessageWriter, value: Any) -> None:
        """Append a value: an element of a repeated field, all of them of a packed one.

        Args:
            writer: of the extended message.
            value: a plain value, or a message object.
        """
        field, out = self.field, bytearray()
        if isinstance(field, RepeatedField) and not field.packed:
            value = [value]
        field.write(out, field.check(value))
        writer.append_raw(bytes(out))

    def open(self, writer: MessageWriter) -> Writer:
        """Open the extension as a nested message, to be written field by field.

        Raises:
            ConfigError: it holds no message.
        """
        codec = self.field.codec
        if not isinstance(codec, MessageCodec):
            raise ConfigError(f"{self.name} holds no message but {codec.kind}: use append")
        nested: Any = writer.nested(self.field.number, codec.message_class.Writer)
        return nested  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"<Extension {self.name} of {self.extendee}>"
