"""Extensions: fields that a schema adds to a message of another schema.

A generated module has one `Extension` for each declared extension, in the module or in the class of
the message that contains the declaration. The extension is used as a key of value classes and
decoders::

    event[chrome.latency] = chrome.Latency(trace_id=7)
    if chrome.latency in event: ...
    event[chrome.latency].trace_id

and it appends values to a writer::

    chrome.frame_number.append(event_writer, 3)
    with chrome.latency.open(event_writer) as latency: ...

An extension is registered when its module is imported. Messages that were decoded earlier keep it
as an unknown field.
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
    """An extension of a message.

    Attributes:
        name: full name, with the package.
        extendee: `MODULE/PATH` of the extended message class.
        field: the field that is added.
    """

    __slots__ = ("extendee", "field", "name")

    def __init__(self, name: str, extendee: str, field: Field) -> None:
        self.name = name
        self.extendee = extendee
        self.field = field

    def append(self, writer: MessageWriter, value: Any) -> None:
        """Append a value to a writer.

        Args:
            writer: writer of the extended message.
            value: a plain value or a message object. For a repeated field, one element; for a
                packed field, the list of all elements.
        """
        field, out = self.field, bytearray()
        if isinstance(field, RepeatedField) and not field.packed:
            value = [value]
        field.write(out, field.check(value))
        writer.append_raw(bytes(out))

    def open(self, writer: MessageWriter) -> Writer:
        """Open the extension as a nested message, to be written field by field.

        Raises:
            ConfigError: the extension is not a message.
        """
        codec = self.field.codec
        if not isinstance(codec, MessageCodec):
            raise ConfigError(f"{self.name} holds no message but {codec.kind}: use append")
        nested: Any = writer.nested(self.field.number, codec.message_class.Writer)
        return nested  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"<Extension {self.name} of {self.extendee}>"
