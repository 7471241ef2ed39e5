"""Reads `@available`, which states the versions in which an element exists.

Before a version is compiled, the elements that don't exist in it are left out. So an element and
its replacement may have the same name.

Versions are numbers, `NEXT` and `HEAD`; HEAD is the default, and contains all elements except
removed elements.
"""

from __future__ import annotations

import re

from stretto_fidl.compiler.syntax_tree import Identifier, Literal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from stretto_fidl.compiler.source import Span
    from stretto_fidl.compiler.syntax_tree import Attribute, AttributeArgument

MAX_NORMAL = (1 << 31) - 1
NEXT = 0xFFD00000
HEAD = 0xFFE00000
FOREVER = 1 << 40
_SPECIAL = {"NEXT": NEXT, "HEAD": HEAD}
_ARGUMENTS = ("platform", "added", "deprecated", "removed", "replaced", "renamed", "note")
_PLATFORM = re.compile("[a-z][a-z0-9]*")
_NUMBER = re.compile("0x[0-9a-f]{1,8}|0b[01]{1,32}|[0-9]{1,10}", re.IGNORECASE)
UNVERSIONED = "unversioned"
"""The name in the IR for the platform of libraries without versions."""


class Availability:
    """The versions in which an element exists, and the version from which it is deprecated."""

    __slots__ = ("added", "deprecated", "removed")

    def __init__(self, added: int = 0, deprecated: int = FOREVER, removed: int = FOREVER) -> None:
        self.added = added
        self.deprecated = deprecated
        self.removed = removed

    def at(self, version: int) -> bool:
        """Return whether the element exists in a version."""
        return self.added <= version < self.removed


ALWAYS = Availability()


class Ending:
    """The attribute that ends an element: `removed=5`, `replaced=5, renamed="other"`.

    Attributes:
        word: `removed` or `replaced`.
        version: The first version without the element.
        renamed: The element's new name; None if it keeps its name.
        span: The place of the attribute.
    """

    __slots__ = ("renamed", "span", "version", "word")

    def __init__(self, word: str, version: int, renamed: str | None, span: Span) -> None:
        self.word = word
        self.version = version
        self.renamed = renamed
        self.span = span


def ending_of(attributes: list[Attribute]) -> Ending | None:
    """Return in which version an element's own attributes remove or replace the element.

    Returns None if they do neither.
    """
    attribute = find(attributes)
    given = {argument.name: argument for argument in attribute.arguments} if attribute else {}
    for word in ("removed", "replaced"):
        if attribute is not None and word in given:
            renamed = given["renamed"].value if "renamed" in given else None
            name = renamed.value if isinstance(renamed, Literal) else None
            text = name if isinstance(name, str) else None
            return Ending(word, version_in(given[word]), text, attribute.span)
    return None


def version_name(version: int) -> str:
    """Return a version as FIDL writes it: a number, `NEXT` or `HEAD`."""
    names = {number: name for name, number in _SPECIAL.items()}
    return names.get(version, str(version))


def find(attributes: list[Attribute]) -> Attribute | None:
    """Return the attribute `@available`; None if the element lacks it."""
    return next((a for a in attributes if a.name == "available"), None)


def parse_version(text: str) -> int | None:
    """Return a version by its number or name; None if the text is not a version."""
    if text in _SPECIAL:
        return _SPECIAL[text]
    if not _NUMBER.fullmatch(text):
        return None
    number = int(text, 0 if text[1:2].isalpha() else 10)
    return number if 1 <= number <= MAX_NORMAL or number in _SPECIAL.values() else None


def platform_of(library: str, attribute: Attribute | None) -> str | None:
    """Return the platform of a library; None for a library without versions.

    Raises:
        CompileError: The name is invalid.
    """
    if attribute is None:
        return None
    for argument in attribute.arguments:
        if argument.name == "platform":
            name = argument.value.value if isinstance(argument.value, Literal) else None
            if not isinstance(name, str) or not _PLATFORM.fullmatch(name):
                raise argument.span.error("a platform's name is lower case letters and digits")
            if name == UNVERSIONED:
                raise argument.span.error(f"no platform can be named `{name}`: that means none")
            return name
    return library.split(".")[0]


def read(attribute: Attribute, parent: Availability, is_library: bool) -> Availability:
    """Return the availability of an element from its attribute `@available`.

    Args:
        attribute: The attribute `@available` of the element.
        parent: The availability of the enclosing element.
        is_library: Whether the element is the library itself.

    Raises:
        CompileError: The attribute is malformed, contradicts itself, or exceeds the parent's
            availability.
    """
    versions = _versions(attribute, is_library)
    removed = versions.get("removed", versions.get("replaced", parent.removed))
    added = versions.get("added", parent.added)
    deprecated = versions.get("deprecated", max(parent.deprecated, added))
    _check_order(attribute.span, versions, added, deprecated, removed)
    ends_too_late = removed > parent.removed or versions.get("replaced") == parent.removed
    if added < parent.added or ends_too_late or versions.get("deprecated", 0) > parent.deprecated:
        raise attribute.span.error(
            "this exists when what it is a part of doesn't: change its versions"
        )
    if added >= parent.removed:
        raise attribute.span.error("this is added when what it is a part of is gone already")
    return Availability(added, deprecated, removed)


def _versions(attribute: Attribute, is_library: bool) -> dict[str, int]:
    names = [argument.name for argument in attribute.arguments]
    if not names:
        raise attribute.span.error("`@available` needs arguments, such as `added=1`")
    versions = {}
    for argument in attribute.arguments:
        if argument.name not in _ARGUMENTS:
            raise argument.span.error(
                f"`@available` knows no such argument: there are {', '.join(_ARGUMENTS)}"
            )
        if argument.name == "platform" and not is_library:
            raise argument.span.error("`platform` stands on the library only")
        if argument.name in ("added", "deprecated", "removed", "replaced"):
            versions[argument.name] = version_in(argument)
    if is_library and "added" not in versions:
        raise attribute.span.error("a library's `@available` must say `added`")
    if is_library and "replaced" in versions:
        raise attribute.span.error("a library can't be `replaced`: write `removed`")
    if is_library and "renamed" in names:
        raise attribute.span.error("a library can't be `renamed`, only members can")
    if "removed" in versions and "replaced" in versions:
        raise attribute.span.error("`removed` and `replaced` exclude each other")
    if "note" in names and not {"deprecated", "removed", "replaced"} & versions.keys():
        raise attribute.span.error("`note` needs `deprecated`, `removed` or `replaced`")
    if "renamed" in names and not {"removed", "replaced"} & versions.keys():
        raise attribute.span.error("`renamed` needs `removed` or `replaced`")
    return versions


def version_maybe_in(argument: AttributeArgument) -> int | None:
    """Return the version that an argument names; None if the argument names no version."""
    value = argument.value
    if isinstance(value, Literal) and value.kind == "numeric":
        return parse_version(value.text)
    return parse_version(str(value.reference)) if isinstance(value, Identifier) else None


def version_in(argument: AttributeArgument) -> int:
    """Return the version that an argument names.

    Raises:
        CompileError: The argument isn't a version.
    """
    version = version_maybe_in(argument)
    if version is None:
        raise argument.span.error(
            f"invalid version: use a number from 1 to {MAX_NORMAL}, NEXT or HEAD"
        )
    return version


def _check_order(
    span: Span, versions: Mapping[str, int], added: int, deprecated: int, removed: int
) -> None:
    if versions.keys() & {"removed", "replaced", "added"} and added >= removed:
        raise span.error("it must be added before it is removed")
    if "deprecated" in versions and not added <= deprecated < removed:
        raise span.error("it must be deprecated after it is added and before it is removed")
