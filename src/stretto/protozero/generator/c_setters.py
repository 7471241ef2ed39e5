"""Generates setters in C: inline functions that use native/core's message.h and wire.h."""

from __future__ import annotations

from stretto.protozero.generator.names import constant
from stretto.protozero.generator.schema import MAP, MESSAGE, SchemaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from stretto.protozero.generator.schema import Field, Schema

# For each field type: the C type of a value, and the C expression of the varint.
_VARINTS = {
    "int32": ("int32_t", "(uint64_t)(int64_t)value"),
    "int64": ("int64_t", "(uint64_t)value"),
    "uint32": ("uint32_t", "value"),
    "uint64": ("uint64_t", "value"),
    "sint32": ("int32_t", "st_zigzag(value)"),
    "sint64": ("int64_t", "st_zigzag(value)"),
    "bool": ("bool", "value"),
    "enum": ("int32_t", "(uint64_t)(int64_t)value"),
}
# For each field type: the C type of a value, and its width in bits.
_FIXED = {
    "fixed32": ("uint32_t", 32),
    "sfixed32": ("int32_t", 32),
    "float": ("float", 32),
    "fixed64": ("uint64_t", 64),
    "sfixed64": ("int64_t", 64),
    "double": ("double", 64),
}


def setters(schema: Schema, wanted: list[tuple[str, list[Field]]]) -> str:
    """Return the C code of the setters of messages.

    Args:
        schema: the schema that defines the messages.
        wanted: pairs of a message's full name and its fields or extensions.

    Raises:
        SchemaError: two functions would have the same name.
    """
    functions: dict[str, str] = {}
    for name, fields in wanted:
        prefix = "st_" + constant(schema.split_package(name)[1]).lower()
        for field in fields:
            for function, text in _functions(prefix, field):
                if function in functions:
                    raise SchemaError(
                        f"{name}.{field.name}: there is a function {function} already"
                    )
                functions[function] = text
    return "".join(functions.values())


def _functions(prefix: str, field: Field) -> Iterator[tuple[str, str]]:
    """Yield the name and text of each function of a field."""
    number, kind = field.number, field.kind
    verb = "add" if field.repeated and not field.packed else "set"
    set_name = f"{prefix}_{verb}_{field.name}"
    put_name = f"{prefix}_put_{field.name}"
    if field.packed or kind in (MESSAGE, MAP, "string", "bytes"):
        yield from _delimited(prefix, field, set_name, put_name)
    elif kind in _VARINTS:
        c_type, value = _VARINTS[kind]
        yield _setter(
            set_name, f"{c_type} value", f"st_message_append_varint(m, {number}, {value})"
        )
        yield _putter(put_name, f"{c_type} value", f"st_put_u64_field(p, {number}, {value})")
    else:
        yield from _fixed(number, kind, set_name, put_name)


def _delimited(
    prefix: str, field: Field, set_name: str, put_name: str
) -> Iterator[tuple[str, str]]:
    number, data = field.number, "const void* data, size_t size"
    yield _setter(set_name, data, f"st_message_append_bytes(m, {number}, data, size)")
    yield _putter(put_name, data, f"st_put_bytes_field(p, {number}, data, size)")
    yield _putter(
        f"{put_name}_size",
        "size_t size",
        f"st_put_varint(st_put_tag(p, {number}, ST_WIRE_DELIMITED), size)",
    )
    if field.kind in (MESSAGE, MAP):
        begin = f"{prefix}_begin_{field.name}"
        call = f"st_message_begin_nested(m, child, {number})"
        yield _setter(begin, "struct st_message* child", call)


def _fixed(number: int, kind: str, set_name: str, put_name: str) -> Iterator[tuple[str, str]]:
    c_type, bits = _FIXED[kind]
    yield _function(
        "void",
        set_name,
        f"struct st_message* m, {c_type} value",
        f"uint{bits}_t bits;",
        "memcpy(&bits, &value, sizeof bits);",
        f"st_message_append_fixed{bits}(m, {number}, bits);",
    )
    yield _function(
        "uint8_t*",
        put_name,
        f"uint8_t* p, {c_type} value",
        f"p = st_put_tag(p, {number}, ST_WIRE_FIXED{bits});",
        "memcpy(p, &value, sizeof value);",
        "return p + sizeof value;",
    )


def _setter(name: str, argument: str, call: str) -> tuple[str, str]:
    return _function("void", name, f"struct st_message* m, {argument}", f"{call};")


def _putter(name: str, argument: str, call: str) -> tuple[str, str]:
    return _function("uint8_t*", name, f"uint8_t* p, {argument}", f"return {call};")


def _function(result: str, name: str, arguments: str, *lines: str) -> tuple[str, str]:
    head = f"{name}({arguments})"
    if len(head) > 78:
        head = f"{name}(\n    {arguments})"
    body = "".join(f"  {line}\n" for line in lines)
    return name, f"static inline {result}\n{head} {{\n{body}}}\n\n"
