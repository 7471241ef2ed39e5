"""Makes default names for layouts, and converts and compares names."""

from __future__ import annotations

import re

_UPPER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Za-z0-9])(?=[A-Z][a-z])")


def canonical(name: str) -> str:
    """Return the canonical form of a name: `http_server` for `HTTPServer` and `HttpServer`.

    Bindings change the spelling of names. So two names in a scope may not have the same form.
    """
    return re.sub("_+", "_", _UPPER.sub("_", name)).lower()


def upper_camel_case(name: str) -> str:
    """Return a name in the spelling of type names: `TableMember` for `table_member`."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def with_article(kind: str) -> str:
    """Return a kind of declaration with its article: `an enum`, `a resource`."""
    name = kind.removeprefix("experimental_").replace("_", " ")
    if name == "bits":
        return name
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


class NamingContext:
    """The place of a layout. The default name of the layout comes from its place.

    Attributes:
        path: The names from the outermost declaration to the layout, as in the IR.
        name: The default name.
    """

    __slots__ = ("name", "path")

    def __init__(self, path: tuple[str, ...], name: str) -> None:
        self.path = path
        self.name = name

    @classmethod
    def of_declaration(cls, name: str) -> NamingContext:
        """Return the context of a declaration that has a name in the file."""
        return cls((name,), name)

    def member(self, name: str) -> NamingContext:
        """Return the context of a layout inside the type of a member.

        This context is for members of the layout that this object describes. The default name of
        the inner layout comes from the member's name alone.
        """
        return NamingContext((*self.path, name), upper_camel_case(name))

    @classmethod
    def of_payload(cls, protocol: str, method: str, word: str) -> NamingContext:
        """Return the context of a payload.

        Args:
            protocol: The name of the protocol.
            method: The name of the method.
            word: `Request` or `Response`; `Request` for the payload of an event.
        """
        name = upper_camel_case(protocol) + upper_camel_case(method) + word
        return cls((protocol, method, word), name)

    @classmethod
    def of_result(cls, protocol: str, method: str, word: str, *path: str) -> NamingContext:
        """Return the context of a result union, or of its success or error.

        Args:
            protocol: The name of the protocol.
            method: The name of the method.
            word: `Result`, `Response` or `Error`.
            path: The name of the union's member; nothing for the union itself.
        """
        return cls((protocol, method, "Response", *path), f"{protocol}_{method}_{word}")
