"""What the IR calls `@sensitive` without having been told so at that place.

    library a;                                  library b; using a;
    @sensitive alias Token = string:100;        type S = struct { t vector<a.Token>; };

A reader of the IR of `b` can't see what `a.Token` is: aliases and new types leave no types of
their own, and `a` may not be at hand. So the attribute goes along to what mentions them: here to
the member `t`. It goes from a library to its declarations, from a protocol to its methods (others
compose them), and from a payload's alias to the method.

A privacy mark that gets lost is worse than none, so names that only look like it are errors: those
two letters or fewer away. `@trace`, which is shorter and may well be two letters away from a name
of one's own, has a letter too many or too few, or two swapped.
"""

from __future__ import annotations

from stretto_fidl.compiler.declarations import AliasDecl, Decl, MethodDecl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto_fidl.compiler.declarations import CompiledAttribute, Element
    from stretto_fidl.compiler.types import TypeUse

SENSITIVE, TRACE = "sensitive", "trace"


def marked(element: Element, *uses: TypeUse | None) -> list[CompiledAttribute]:
    """The attributes of an element, with the mark that it gets from elsewhere.

    Args:
        element: A declaration, a member or a method.
        uses: The types that it mentions.
    """
    if element.attribute(SENSITIVE) is not None:
        return element.attributes
    mark = _from_above(element) or next(filter(None, map(_of_use, uses)), None)
    return element.attributes if mark is None else [*element.attributes, mark]


def _from_above(element: Element) -> CompiledAttribute | None:
    if isinstance(element, MethodDecl):
        return element.protocol.attribute(SENSITIVE) or _from_above(element.protocol)
    if isinstance(element, Decl):
        found = (each for each in element.library.attributes if each.name == SENSITIVE)
        return next(found, None)
    return None


def _of_use(use: TypeUse | None) -> CompiledAttribute | None:
    """The mark of the aliases and new types by which a type was written."""
    while use is not None:
        for decl in (use.alias.decl if use.alias else None, use.type.decl):
            if isinstance(decl, AliasDecl) and (mark := _of_alias(decl)):
                return mark
        use = use.type.element
    return None


def _of_alias(decl: AliasDecl) -> CompiledAttribute | None:
    return decl.attribute(SENSITIVE) or _from_above(decl) or _of_use(decl.type)


def meant(name: str) -> str:
    """Which of the two attributes a name was probably meant to be; "" for neither."""
    word = name.lower()
    if name != SENSITIVE and 0 <= _distance(word, SENSITIVE) <= 2:
        return SENSITIVE
    same_letters = sorted(word) == sorted(TRACE)
    if name != TRACE and _distance(word, TRACE) == 1 and (same_letters or len(word) != len(TRACE)):
        return TRACE
    return TRACE if word == TRACE != name else ""


def _distance(one: str, other: str) -> int:
    """How many letters are missing, too many, wrong or swapped with the next one."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one):
        above, before, row = before, row, [i + 1]
        for j, b in enumerate(other):
            row.append(min(before[j + 1] + 1, row[j] + 1, before[j] + (a != b)))
            if i and j and a == other[j - 1] and one[i - 1] == b:
                row[-1] = min(row[-1], above[j - 1] + 1)
    return row[-1]
