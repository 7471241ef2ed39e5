"""Prints values as text, or returns them as plain values, without `@sensitive` values.

`repr` returns the same text, because log records and exceptions contain reprs, and traces contain
log records and exceptions. The attributes of an object still return the values of sensitive
members.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stretto.base.excerpts import SENSITIVE, excerpt
from stretto_fidl.codec import types
from stretto_fidl.codec.handle import Handle, type_name

if TYPE_CHECKING:
    from collections.abc import Iterable

REDACTED = SENSITIVE


def redacted(value: Any) -> str:
    """Return the text of a value, with `<sensitive>` for sensitive members and types.

    Args:
        value: An object of a class of the bindings, or the value of a member.
    """
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(redacted(element) for element in value)}]"
    type_ = getattr(value, "TYPE", None)
    if not isinstance(type_, types.Named):
        return repr(value)
    if type_.sensitive:
        return REDACTED
    if isinstance(type_, types.Union):
        members = _union_members(value, type_)
    elif isinstance(type_, types.Struct):
        members = _members(value, type_)
    else:
        return repr(value)
    return f"{type_.short_name}({', '.join(members)})"


def excerpt_of(value: Any) -> Any:
    """Return the excerpt of a value (`stretto.base.excerpts`), without sensitive values."""
    return excerpt(value, _parts)


def _members(value: Any, type_: types.Struct) -> list[str]:
    is_table = isinstance(type_, types.Table)
    found = []
    for member in type_.members:
        inner = getattr(value, member.python_name)
        if inner is not None or not is_table:
            found.append(_member(member, inner))
    return found


def _union_members(value: Any, type_: types.Union) -> list[str]:
    for member in type_.members:
        if member.ordinal == value.ordinal:
            return [_member(member, value.value)]
    return [f"<unknown {value.ordinal}>"]


def _member(member: types.Member, value: Any) -> str:
    return f"{member.python_name}={REDACTED if is_hidden(member) else redacted(value)}"


def is_hidden(member: types.Member) -> bool:
    """Return whether the value of a member is sensitive."""
    return member.sensitive or _is_of_sensitive_type(member.type)


def _is_of_sensitive_type(type_: types.Type) -> bool:
    """Return whether the values of a type are sensitive.

    A value doesn't always show this: a plain int or an empty list has no FIDL type.
    """
    if isinstance(type_, (types.Vector, types.Array)):
        return _is_of_sensitive_type(type_.element)
    type_, _ = types.resolve(type_)
    return isinstance(type_, types.Named) and type_.sensitive


def _parts(value: Any) -> Iterable[tuple[str, Any]] | str | None:
    """Return the names and values that represent an object in an excerpt.

    `stretto.base.excerpts.Parts` describes the result.
    """
    if isinstance(value, Handle):
        return f"<{type_name(value.object_type)}>"
    type_ = getattr(value, "TYPE", None)
    if not isinstance(type_, types.Named):
        return None
    if type_.sensitive:
        return REDACTED
    if isinstance(type_, types.Union):
        return _union_parts(value, type_)
    if isinstance(type_, types.Struct):
        return _struct_parts(value, type_)
    return repr(value)


def _struct_parts(value: Any, type_: types.Struct) -> Iterable[tuple[str, Any]]:
    is_table = isinstance(type_, types.Table)
    for member in type_.members:
        inner = getattr(value, member.python_name)
        if inner is not None or not is_table:
            yield member.name, _SECRET if is_hidden(member) else inner


def _union_parts(value: Any, type_: types.Union) -> Iterable[tuple[str, Any]] | str:
    for member in type_.members:
        if member.ordinal == value.ordinal:
            return [(member.name, _SECRET if is_hidden(member) else value.value)]
    return f"<unknown {value.ordinal}>"


class _Secret:
    """A placeholder for a sensitive value."""

    TYPE = types.Named("", sensitive=True)


_SECRET = _Secret()
