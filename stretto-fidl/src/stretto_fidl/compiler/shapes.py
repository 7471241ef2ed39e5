"""Computes type shapes: sizes in wire format v2.

    struct      its members in order, each aligned
    box         8 bytes that say whether the struct exists; the struct is out of line
    vector      16 bytes: count and presence; its elements are out of line
    table       a vector of envelopes
    union       an ordinal and an envelope
    envelope    8 bytes; they hold contents of up to 4 bytes, larger contents are out of line

The offset of an out-of-line object is a multiple of 8. `UNBOUNDED` stands for a size without a
limit, and for the depth and out-of-line size of a type that contains itself.
"""

from __future__ import annotations

from dataclasses import replace

from stretto_fidl.compiler import types
from stretto_fidl.compiler.declarations import AliasDecl, LayoutDecl
from stretto_fidl.compiler.graph import components
from stretto_fidl.compiler.type_shape import TypeShape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stretto_fidl.compiler.declarations import Decl
    from stretto_fidl.compiler.types import Type

UNBOUNDED = (1 << 32) - 1
MAX_INLINE_SIZE = (1 << 16) - 1
_INLINED_IN_ENVELOPE = 4


def _up_to(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


def _saturated(number: int) -> int:
    return min(number, UNBOUNDED)


def _times(count: int, number: int) -> int:
    """Return a count times a size, `UNBOUNDED` at most. A size of 0 gives 0 for any count."""
    return _saturated(count * number)


def _deeper(depth: int) -> int:
    return _saturated(depth + 1)


def shape_of(type_: Type) -> TypeShape:
    """Return the shape of a type, using the shapes of all declarations that it needs."""
    kind = type_.kind
    if kind == types.PRIMITIVE:
        size = types.SIZES[type_.subtype]
        return TypeShape(size, size)
    if kind == types.INTERNAL:
        return TypeShape(4, 4)
    if kind in (types.HANDLE, types.ENDPOINT):
        return TypeShape(4, 4, max_handles=1)
    if kind == types.STRING:
        size = UNBOUNDED if type_.size is None else _up_to(type_.size, 8)
        return TypeShape(16, 8, 1, 0, _saturated(size), True)
    if kind == types.STRING_ARRAY:
        assert type_.size is not None
        return TypeShape(_saturated(type_.size), 1)
    if kind == types.IDENTIFIER:
        assert type_.decl is not None
        return _declared(type_.decl)
    assert type_.element is not None
    element = shape_of(type_.element.type)
    if kind == types.BOX:
        return _out_of_line(element)
    return _array(type_, element) if kind == types.ARRAY else _vector(type_, element)


def _declared(decl: Decl) -> TypeShape:
    if isinstance(decl, AliasDecl):
        assert decl.type is not None
        return shape_of(decl.type.type)
    assert isinstance(decl, LayoutDecl)
    assert decl.shape is not None
    return decl.shape


def _out_of_line(content: TypeShape) -> TypeShape:
    size = _up_to(content.inline_size, 8)
    return TypeShape(
        8, 8,
        _deeper(content.depth),
        content.max_handles,
        _saturated(content.max_out_of_line + size),
        content.has_padding or size != content.inline_size,
        content.has_flexible_envelope,
    )  # fmt: skip


def _array(type_: Type, element: TypeShape) -> TypeShape:
    assert type_.size is not None
    return replace(
        element,
        inline_size=_times(type_.size, element.inline_size),
        max_handles=_times(type_.size, element.max_handles),
        max_out_of_line=_times(type_.size, element.max_out_of_line),
    )


def _vector(type_: Type, element: TypeShape) -> TypeShape:
    count = UNBOUNDED if type_.size is None else type_.size
    inline = _up_to(_times(count, element.inline_size), 8)
    elsewhere = _times(count, element.max_out_of_line)
    return TypeShape(
        16, 8,
        _deeper(element.depth),
        _times(count, element.max_handles),
        _saturated(inline + elsewhere),
        element.has_padding or element.inline_size % 8 != 0,
        element.has_flexible_envelope,
    )  # fmt: skip


def _envelope(content: TypeShape) -> TypeShape:
    inlined = content.inline_size <= _INLINED_IN_ENVELOPE
    size = _up_to(content.inline_size, 4 if inlined else 8)
    return TypeShape(
        8, 8,
        _deeper(content.depth),
        content.max_handles,
        _saturated(content.max_out_of_line + (0 if inlined else size)),
        content.has_padding or size != content.inline_size,
        content.has_flexible_envelope,
    )  # fmt: skip


def compute_shapes(decls: Iterable[LayoutDecl]) -> None:
    """Compute the shape of each layout. The shapes of other libraries' layouts exist already.

    Raises:
        CompileError: A struct is too large.
    """
    own = list(decls)
    for decl in own:
        # The first guess is replaced later. Until then other types use its inline size.
        decl.shape = _first_guess(decl)
    for component in components(own, _content):
        recursive = len(component) > 1 or component[0] in _content(component[0])
        for decl in _inline_order(component):
            decl.shape = _layout(decl)
        if recursive:
            _close(component)


def _first_guess(decl: LayoutDecl) -> TypeShape:
    if decl.kind in ("enum", "bits"):
        return _layout(decl)
    return TypeShape(16, 8)


def _inline_order(component: list[LayoutDecl]) -> list[LayoutDecl]:
    """Return the structs in an order in which each follows the structs that it contains inline."""
    group = set(component)
    inline = components(component, lambda decl: [d for d in _inline(decl) if d in group])
    return [decl for part in inline for decl in part]


def _close(component: list[LayoutDecl]) -> None:
    """Compute the shapes of types that contain each other.

    If one of these types holds a handle, padding or a flexible envelope, all of these types do.
    """
    # Compute the shapes again, because now each type of the component has a first shape.
    shapes = [_layout(decl) for decl in component]
    padding = any(shape.has_padding for shape in shapes)
    flexible = any(shape.has_flexible_envelope for shape in shapes)
    handles = any(shape.max_handles for shape in shapes)
    for decl, shape in zip(component, shapes, strict=True):
        shape.depth = shape.max_out_of_line = UNBOUNDED
        shape.max_handles = UNBOUNDED if handles else 0
        shape.has_padding, shape.has_flexible_envelope = padding, flexible
        decl.shape = shape


def _content(decl: LayoutDecl) -> list[LayoutDecl]:
    """Return the layouts of this library that a layout contains, inline or out of line."""
    found = []
    for member in decl.members:
        if member.type is not None:
            found += [d for d in layouts_in(member.type.type) if d.library is decl.library]
    return found


def _inline(decl: LayoutDecl) -> list[LayoutDecl]:
    if decl.kind not in ("struct", "overlay"):
        return []
    found: list[LayoutDecl] = []
    for member in decl.members:
        type_ = member.type.type if member.type is not None else None
        while type_ is not None and type_.kind == types.ARRAY and type_.element is not None:
            type_ = type_.element.type
        if type_ is not None and type_.kind == types.IDENTIFIER:
            found += layouts_in(type_)
    return found


def layouts_in(type_: Type) -> Iterator[LayoutDecl]:
    """Yield the layout in a type, if there is one.

    The layout may be inside of vectors, arrays, boxes and new types.
    """
    while type_.element is not None:
        type_ = type_.element.type
    if isinstance(type_.decl, AliasDecl) and type_.decl.type is not None:
        yield from layouts_in(type_.decl.type.type)
    elif isinstance(type_.decl, LayoutDecl):
        yield type_.decl


def _layout(decl: LayoutDecl) -> TypeShape:
    if decl.kind in ("enum", "bits"):
        assert decl.subtype is not None
        return shape_of(decl.subtype.type)
    if decl.kind == "struct":
        return _struct(decl)
    return {"table": _table, "union": _union, "overlay": _overlay}[decl.kind](decl)


def _shapes(decl: LayoutDecl) -> list[TypeShape]:
    return [shape_of(member.type.type) for member in decl.members if member.type is not None]


def _struct(decl: LayoutDecl) -> TypeShape:
    shapes = _shapes(decl)
    if not shapes:
        return TypeShape(1, 1)
    alignment = max(shape.alignment for shape in shapes)
    end = 0
    for member, shape in zip(decl.members, shapes, strict=True):
        member.offset = _up_to(end, shape.alignment)
        end = member.offset + shape.inline_size
    size = _up_to(end, alignment)
    if size > MAX_INLINE_SIZE:
        raise decl.span.error(
            f"`{decl.name}` has {size} bytes inline, the limit is {MAX_INLINE_SIZE}: "
            "use vectors or boxes"
        )
    ends = [member.offset for member in decl.members[1:]] + [size]
    for member, shape, next_ in zip(decl.members, shapes, ends, strict=True):
        member.padding = next_ - member.offset - shape.inline_size
    padding = any(member.padding for member in decl.members)
    return _sum(TypeShape(size, alignment, has_padding=padding), shapes)


def _sum(shape: TypeShape, parts: list[TypeShape]) -> TypeShape:
    for part in parts:
        shape.depth = max(shape.depth, part.depth)
        shape.max_handles = _saturated(shape.max_handles + part.max_handles)
        shape.max_out_of_line = _saturated(shape.max_out_of_line + part.max_out_of_line)
        shape.has_padding |= part.has_padding
        shape.has_flexible_envelope |= part.has_flexible_envelope
    return shape


def _one_of(shape: TypeShape, parts: list[TypeShape]) -> TypeShape:
    for part in parts:
        shape.depth = max(shape.depth, part.depth)
        shape.max_handles = max(shape.max_handles, part.max_handles)
        shape.max_out_of_line = max(shape.max_out_of_line, part.max_out_of_line)
        shape.has_padding |= part.has_padding
        shape.has_flexible_envelope |= part.has_flexible_envelope
    return shape


def _table(decl: LayoutDecl) -> TypeShape:
    envelopes = [_envelope(shape) for shape in _shapes(decl)]
    shape = _sum(TypeShape(16, 8, has_flexible_envelope=True), envelopes)
    shape.depth = _deeper(shape.depth)
    count = max((member.ordinal for member in decl.members), default=0)
    shape.max_out_of_line = _saturated(shape.max_out_of_line + count * 8)
    return shape


def _union(decl: LayoutDecl) -> TypeShape:
    envelopes = [_envelope(shape) for shape in _shapes(decl)]
    return _one_of(TypeShape(16, 8, has_flexible_envelope=not decl.strict), envelopes)


def _overlay(decl: LayoutDecl) -> TypeShape:
    """Return the shape of an overlay: an ordinal, then room for the largest member."""
    shapes = _shapes(decl)
    alignment = max((shape.alignment for shape in shapes), default=1)
    largest = max((shape.inline_size for shape in shapes), default=0)
    size = _up_to(8 + largest, 8)
    padding = any(size - 8 != shape.inline_size for shape in shapes)
    return _one_of(TypeShape(size, max(alignment, 8), has_padding=padding), shapes)
