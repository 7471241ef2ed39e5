"""Copies `@sensitive` in the IR to the elements that mention a sensitive element.

    library a;                                  library b; using a;
    @sensitive alias Token = string:100;        type S = struct { t vector<a.Token>; };

The IR of `b` does not contain `a.Token`: an IR does not list aliases and new types as types. The IR
of `a` may not be available. So the attribute is copied from an alias to the elements that mention
it, here to the member `t`; from a library to its declarations; from a protocol to its methods,
because other protocols may compose them; and from the alias of a payload to the method.

A misspelled attribute would protect nothing. So a name is an error if it differs from `sensitive`
by one or two letters. `trace` is shorter: a name is an error only if it is `trace` with one letter
too many or too few, or with two letters swapped.
"""

from __future__ import annotations

from stretto_fidl.compiler.declarations import AliasDecl, Decl, MethodDecl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto_fidl.compiler.declarations import CompiledAttribute, Element
    from stretto_fidl.compiler.types import TypeUse

SENSITIVE, TRACE = "sensitive", "trace"


def marked(element: Element, *uses: TypeUse | None) -> list[CompiledAttribute]:
    """Return the attributes of an element, with `@sensitive` if the element has to be sensitive.

    An element inherits `@sensitive` from its parents and from the types that it uses.

    Args:
        element: A declaration, a member or a method.
        uses: The types that the element uses.
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
    """Return `@sensitive` if an alias or new type in `use` has this attribute; else None.

    `use` may be the alias or new type, or an array or vector of it.
    """
    while use is not None:
        for decl in (use.alias.decl if use.alias else None, use.type.decl):
            if isinstance(decl, AliasDecl) and (mark := _of_alias(decl)):
                return mark
        use = use.type.element
    return None


def _of_alias(decl: AliasDecl) -> CompiledAttribute | None:
    return decl.attribute(SENSITIVE) or _from_above(decl) or _of_use(decl.type)


def intended_attribute(name: str) -> str:
    """Return the attribute, `sensitive` or `trace`, that a name misspells; "" for none."""
    word = name.lower()
    if name != SENSITIVE and 0 <= _distance(word, SENSITIVE) <= 2:
        return SENSITIVE
    same_letters = sorted(word) == sorted(TRACE)
    if name != TRACE and _distance(word, TRACE) == 1 and (same_letters or len(word) != len(TRACE)):
        return TRACE
    return TRACE if word == TRACE != name else ""


def _distance(one: str, other: str) -> int:
    """Return how many edits turn one word into the other.

    An edit removes, adds or changes a letter, or swaps two neighbouring letters.
    """
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one):
        above, before, row = before, row, [i + 1]
        for j, b in enumerate(other):
            row.append(min(before[j + 1] + 1, row[j] + 1, before[j] + (a != b)))
            if i and j and a == other[j - 1] and one[i - 1] == b:
                row[-1] = min(row[-1], above[j - 1] + 1)
    return row[-1]
