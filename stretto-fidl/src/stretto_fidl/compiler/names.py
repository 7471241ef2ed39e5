"""How names are made, compared and shown."""

from __future__ import annotations

import re

_UPPER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Za-z0-9])(?=[A-Z][a-z])")


def canonical(name: str) -> str:
    """The form of a name that is unique in a scope, because bindings change the spelling.

    `HTTPServer`, `http_server` and `HttpServer` are one name.
    """
    return re.sub("_+", "_", _UPPER.sub("_", name)).lower()


def upper_camel_case(name: str) -> str:
    """`table_member` as the name of a type: `TableMember`."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def with_article(kind: str) -> str:
    """A kind of declaration in a sentence: `an enum`, `a resource`."""
    name = kind.removeprefix("experimental_").replace("_", " ")
    if name == "bits":
        return name
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


class NamingContext:
    """The place of a layout, and the name that it has without one of its own.

    Attributes:
        path: The names from the outermost declaration inwards, as in the IR.
        name: The name of a layout at this place.
    """

    __slots__ = ("name", "path")

    def __init__(self, path: tuple[str, ...], name: str) -> None:
        self.path = path
        self.name = name

    @classmethod
    def of_declaration(cls, name: str) -> NamingContext:
        """A declaration with a name of its own."""
        return cls((name,), name)

    def member(self, name: str) -> NamingContext:
        """A member of this layout. Its type is named by the member alone."""
        return NamingContext((*self.path, name), upper_camel_case(name))

    @classmethod
    def of_payload(cls, protocol: str, method: str, word: str) -> NamingContext:
        """A payload.

        Args:
            protocol: Its name.
            method: Its name.
            word: `Request` or `Response`; an event's is `Request`.
        """
        name = upper_camel_case(protocol) + upper_camel_case(method) + word
        return cls((protocol, method, word), name)

    @classmethod
    def of_result(cls, protocol: str, method: str, word: str, *path: str) -> NamingContext:
        """The union of success and error, or one of these.

        Args:
            protocol: Its name.
            method: Its name.
            word: `Result`, `Response` or `Error`.
            path: The union's member.
        """
        return cls((protocol, method, "Response", *path), f"{protocol}_{method}_{word}")
