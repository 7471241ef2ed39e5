"""Describes the fields that a filter allows, as text."""

from __future__ import annotations

from stretto.protozero.filter.schema import PASSTHROUGH, FilterString

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto import _native
    from stretto.protozero.filter.schema import FilteredField, FilteredMessage, SchemaFilter


def describe_schema(schema: SchemaFilter) -> list[str]:
    """Return one line per field: message, number, type, name, and how it is filtered."""
    return [
        _line(message, field, _purpose(field))
        for message in schema.messages
        for field in message.in_order()
    ]


def describe_allowed(schema: SchemaFilter, allowed: _native.MessageFilter) -> list[str]:
    """Return the lines of `describe_schema` for the fields that a bytecode allows.

    A message that the bytecode filters differently in two places is listed twice.
    """
    lines = []
    pending = [(schema.messages[0], 0)]
    for message, number in pending:  # The loop appends to the list over which it iterates.
        for field in message.in_order():
            rule = allowed.query(number, field.number)
            if rule is None:
                continue
            lines.append(_line(message, field, _rule_text(field, rule)))
            if rule[0] == "nested" and field.nested is not None:
                target = (field.nested, rule[1])
                if target not in pending:
                    pending.append(target)
    return lines


def _line(message: FilteredMessage, field: FilteredField, purpose: str) -> str:
    name, number = message.name, field.number
    return f"{name:<60} {number:3} {field.kind:<8} {field.name:<32} {purpose}".rstrip()


def _purpose(field: FilteredField) -> str:
    if isinstance(field.annotation, FilterString):
        return _string_text(field.annotation.semantic_type)
    if field.annotation is PASSTHROUGH:
        return "# PASSTHROUGH"
    return field.nested.name if field.nested is not None else ""


def _rule_text(field: FilteredField, rule: tuple[str, int]) -> str:
    what, argument = rule
    if what == "string":
        return _string_text(argument)
    if field.nested is None:
        return ""
    return field.nested.name if what == "nested" else "# PASSTHROUGH"


def _string_text(semantic_type: int) -> str:
    return f"# FILTER STRING, semantic type {semantic_type}"
