"""Compiles structs, tables, unions, overlays, enums and bits."""

from __future__ import annotations

from stretto_fidl.compiler import types
from stretto_fidl.compiler.constants import integer_range
from stretto_fidl.compiler.names import canonical, with_article
from stretto_fidl.compiler.types import TypeUse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from stretto_fidl.compiler.compilation import Compilation
    from stretto_fidl.compiler.declarations import Element, LayoutDecl, Member
    from stretto_fidl.compiler.source import Span

MAX_TABLE_ORDINAL = 64
_DEFAULTS_ALLOWED = "allow_deprecated_struct_defaults"


def compile_layout(compilation: Compilation, decl: LayoutDecl) -> None:
    """Set the types and values of a layout's members, and check the layout.

    Raises:
        CompileError: The layout is wrong.
    """
    check_names(decl.members, "member")
    for member in decl.members:
        compilation.attributes(member, f"{decl.kind} member")
    if decl.kind in ("enum", "bits"):
        _values(compilation, decl)
        return
    for member in decl.members:
        assert member.type_syntax is not None
        member.type = compilation.types.resolve(member.type_syntax)
    if decl.kind == "struct":
        for member in decl.members:
            _default(compilation, decl, member)
    else:
        _check_ordinals(decl)


def check_names(members: Sequence[Element], what: str) -> None:
    """Check that no two names are equal or too similar.

    Raises:
        CompileError: Two names are equal or too similar.
    """
    seen: dict[str, Element] = {}
    for member in members:
        other = seen.setdefault(canonical(member.name), member)
        if other is not member:
            raise member.span.error(
                f"{what} `{member.name}` and `{other.name}` at {other.span} "
                "have the same or too similar names: rename one of them"
            )


def _default(compilation: Compilation, decl: LayoutDecl, member: Member) -> None:
    if member.value_syntax is None:
        return
    assert member.type is not None
    type_ = member.type.type
    is_scalar = type_.decl is not None and type_.decl.kind in ("enum", "bits")
    if type_.nullable or not (is_scalar or type_.kind in (types.PRIMITIVE, types.STRING)):
        raise member.span.error(f"a member of type `{type_.text}` can't have a default")
    allowed = decl.old or decl.attribute(_DEFAULTS_ALLOWED) or member.attribute(_DEFAULTS_ALLOWED)
    if not allowed:
        raise member.span.error(
            "defaults of struct members are deprecated: remove it, "
            f"or mark the struct `@{_DEFAULTS_ALLOWED}`"
        )
    member.value = compilation.constants.evaluate(member.value_syntax, type_)


def _check_ordinals(decl: LayoutDecl) -> None:
    seen: dict[int, Span] = {}
    for ordinal, span in [*decl.reserved, *((m.ordinal, m.span) for m in decl.members)]:
        other = seen.setdefault(ordinal, span)
        if other is not span:
            raise span.error(f"ordinal {ordinal} is used twice; the other one is at {other}")
    if decl.kind == "table":
        _check_table(decl)
    for member in decl.members:
        assert member.type is not None
        if member.type.type.nullable:
            raise member.type.span.error(
                f"members of {with_article(decl.kind)} can't be optional: they may be absent anyway"
            )
    is_open = decl.kind == "table" or not decl.strict
    if not decl.members and not is_open:
        raise decl.span.error(f"a strict {decl.kind} needs at least one member")
    if decl.kind == "overlay" and decl.reserved:
        raise decl.reserved[0][1].error("an overlay can't have reserved members")


def _check_table(decl: LayoutDecl) -> None:
    for member in decl.members:
        assert member.type is not None
        if member.ordinal > MAX_TABLE_ORDINAL:
            raise member.span.error(
                f"a table's ordinals go to {MAX_TABLE_ORDINAL}: put members in another table"
            )
        inner = member.type.type.decl
        if member.ordinal == MAX_TABLE_ORDINAL and (inner is None or inner.kind != "table"):
            raise member.span.error(
                f"member {MAX_TABLE_ORDINAL} of a table must be a table, "
                "so that there is room for more members"
            )


def compile_subtype(compilation: Compilation, decl: LayoutDecl) -> None:
    """Find the underlying type of an enum or bits; uint32 if none is written.

    Raises:
        CompileError: The written type can't be an underlying type.
    """
    if decl.subtype_syntax is None:
        decl.subtype = TypeUse(decl.span, types.primitive("uint32"))
        return
    use = compilation.types.resolve(decl.subtype_syntax)
    is_integer = use.type.kind == types.PRIMITIVE and "int" in use.type.subtype
    if not is_integer or (decl.kind == "bits" and not use.type.subtype.startswith("u")):
        wanted = "unsigned integer" if decl.kind == "bits" else "integer"
        raise use.span.error(
            f"the type of {decl.kind} must be an {wanted} type: uint32 is the usual"
        )
    decl.subtype = use


def _values(compilation: Compilation, decl: LayoutDecl) -> None:
    compilation.underlying(decl)
    assert decl.subtype is not None
    if not decl.members and decl.strict:
        raise decl.span.error(f"strict {decl.kind} must have at least one member")
    seen: dict[int, Member] = {}
    for member in decl.members:
        assert member.value_syntax is not None
        member.value = compilation.constants.evaluate(member.value_syntax, decl.subtype.type)
        other = seen.setdefault(member.value.integer, member)
        if other is not member:
            raise member.span.error(
                f"`{member.name}` has the same value as `{other.name}` at {other.span}"
            )
    if decl.kind == "bits":
        _check_bits(decl)
    else:
        _find_unknown(decl, decl.subtype.type.subtype)


def _check_bits(decl: LayoutDecl) -> None:
    for member in decl.members:
        assert member.value is not None
        value = member.value.integer
        if value.bit_count() != 1:
            raise member.value.syntax.span.error(
                f"{value} isn't a power of two: bits are single bits"
            )
        decl.mask |= value


def _find_unknown(decl: LayoutDecl, subtype: str) -> None:
    """Set the value that stands for unknown members in a flexible enum.

    It is the value of the member marked `@unknown`, or the highest value of the integer type.
    """
    decl.unknown_value = integer_range(subtype)[1]
    marked = [member for member in decl.members if member.attribute("unknown") is not None]
    if marked and decl.strict:
        raise marked[0].span.error("`@unknown` makes no sense in a strict enum: make it flexible")
    if len(marked) > 1:
        raise marked[1].span.error("only one member can be `@unknown`")
    if marked:
        assert marked[0].value is not None
        decl.unknown_value = marked[0].value.integer
        return
    for member in decl.members:
        assert member.value is not None
        if member.value.integer != decl.unknown_value or decl.strict:
            continue
        if decl.old and not decl.marked:
            # An enum in the old syntax is strict unless it is marked `flexible`.
            decl.strict = True
        else:
            raise member.span.error(
                f"{decl.unknown_value} is the value for unknown members: change it, "
                "mark the member `@unknown`, or make the enum strict"
            )
