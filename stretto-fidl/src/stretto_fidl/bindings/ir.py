"""Reads the JSON IR of a library, from which the bindings make their classes.

The IR may come from `stretto fidl compile` or from Fuchsia's compiler. Older compilers wrote client
ends as plain identifiers, server ends as requests, payloads by name, attributes in CamelCase and
protocols as interfaces; the bindings read these older forms too.

The document is not trusted, so `ir_checks` checks it.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from stretto_fidl.bindings.ir_attributes import attributes, rpc_attributes
from stretto_fidl.bindings.ir_checks import (
    IR,
    MAX_COUNT,
    MAX_DEPTH,
    MAX_ORDINAL,
    MAX_TABLE_ORDINAL,
    check_unique,
    checked_declarations,
    checked_library,
    checked_name,
    integer_type,
    whole_number,
)
from stretto_fidl.bindings.protocols import EVENT, ONE_WAY, TWO_WAY
from stretto_fidl.codec import types
from stretto_fidl.codec.handle import SAME_RIGHTS
from stretto_fidl.errors import FidlError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_KINDS = ("bits", "enum", "struct", "table", "union", "protocol", "service", "const")
_PAYLOADS = {
    "request": "maybe_request_payload",
    "response": "maybe_response_payload",
    "success": "maybe_response_success_type",
    "error": "maybe_response_err_type",
}
_MALFORMED = (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError)


@contextmanager
def reading() -> Iterator[None]:
    """Turn an exception that malformed IR causes into a FidlError.

    Raises:
        FidlError: The document is not an IR.
    """
    try:
        yield
    except FidlError:
        raise
    except _MALFORMED as error:
        raise FidlError(
            f"this is no JSON IR of a FIDL library ({type(error).__name__}: {error}): "
            "make it by `stretto fidl compile`"
        ) from error


class MethodDefinition:
    """The arguments of the constructor of `Method`."""

    __slots__ = ("attributes", "composed", "kind", "name", "ordinal", "strict", "types")

    def __init__(self, reader: LibraryReader, method: IR) -> None:
        self.name: str = checked_name(method["name"])
        self.ordinal = whole_number(
            method["ordinal"], 1, MAX_ORDINAL, f"the ordinal of {self.name}"
        )
        two_way = method["has_request"] and method["has_response"]
        self.kind = TWO_WAY if two_way else ONE_WAY if method["has_request"] else EVENT
        self.strict = bool(method.get("strict", True))
        self.composed = bool(method.get("is_composed", False))
        self.attributes = rpc_attributes(method)
        self.types = {
            name: reader.payload(method[key]) for name, key in _PAYLOADS.items() if method.get(key)
        }


class LibraryReader:
    """Reads the definitions of one library.

    Args:
        ir: The parsed JSON document.
        dependencies: The libraries whose types this library mentions.
    """

    def __init__(self, ir: IR, dependencies: tuple[types.Library, ...] = ()) -> None:
        self.ir = ir
        others = (name for library in dependencies for name in library.sensitive)
        self._sensitive = _sensitive_names(ir, others)
        name = checked_library(ir["name"])
        self.library = types.Library(name, dependencies, self._sensitive)
        self._kinds = dict(_kinds(ir))
        self._new_types = {
            new["name"]: new["type"] for new in ir.get("new_type_declarations") or []
        }
        self._payloads: set[str] | None = None
        self._is_sensitive = "sensitive" in attributes(ir)
        own = [each["name"] for kind in _KINDS for each in self.declarations(kind)]
        checked_declarations(self.library.name, own)

    def declarations(self, kind: str) -> list[IR]:
        """Return the definitions of a kind, in the order of the document."""
        found = self.ir.get(f"{kind}_declarations")
        if found is None and kind == "protocol":
            # Before 2020, compilers wrote protocols under this key.
            found = self.ir.get("interface_declarations")
        for declaration in found or []:
            checked_name(declaration["name"], full=True)
        return list(found or [])

    def named_types(self) -> Iterator[tuple[types.Named, IR]]:
        """Yield pairs: a type with a name, and the definition of the type in the IR."""
        if self.ir.get("overlay_declarations"):
            raise FidlError(f"{self.library.name} has overlays, which are experimental in FIDL "
                            "and not supported; use a union")  # fmt: skip
        for kind in ("bits", "enum", "struct", "table", "union"):
            for declaration in self.declarations(kind):
                yield self._named(kind, declaration, self._is_sensitive), declaration

    def external_structs(self) -> Iterator[tuple[types.Named, IR]]:
        """Yield the structs of other libraries that are payloads of composed methods.

        The IR repeats the definitions of these structs.
        """
        for declaration in self.declarations("external_struct"):
            yield self._named("struct", declaration), declaration

    def _named(self, kind: str, ir: IR, sensitive: bool = False) -> types.Named:
        name, sensitive = ir["name"], sensitive or "sensitive" in attributes(ir)
        if len(ir.get("naming_context") or ()) > 1:
            sensitive = sensitive or name in self._hidden_payloads()
        names = [member["name"] for member in ir["members"] if member.get("name")]
        check_unique(f"{name} has two members of one name", names)
        if kind in ("bits", "enum"):
            underlying, values = _numbers(ir)
            sensitive = sensitive or any("sensitive" in attributes(each) for each in ir["members"])
            cls = types.Bits if kind == "bits" else types.Enum
            return cls(name, underlying, values, bool(ir["strict"]), sensitive)
        members = tuple(
            self._member(kind, member)
            for member in ir["members"]
            if not member.get("reserved", False)
        )
        if kind != "struct":
            check_unique(
                f"{name} has two members of one ordinal", (each.ordinal for each in members)
            )
        resource = bool(ir.get("resource", _may_hold_handles(ir)))
        if kind == "union":
            return types.Union(name, members, bool(ir["strict"]), resource, sensitive)
        if kind == "table":
            return types.Table(name, members, resource, sensitive)
        return types.Struct(name, members, resource, sensitive)

    def _hidden_payloads(self) -> set[str]:
        """Return the type names of the payloads of sensitive methods."""
        if self._payloads is None:
            mentions = (
                method.get(key) or ""
                for protocol in self.declarations("protocol")
                for method in protocol["methods"]
                if "sensitive" in (attributes(method) | self.protocol_attributes(protocol))
                for key in _PAYLOADS.values()
            )
            self._payloads = {
                each if isinstance(each, str) else each.get("identifier") for each in mentions
            }
        return self._payloads

    def _member(self, kind: str, ir: IR) -> types.Member:
        name, ordinal = checked_name(ir["name"]), 0
        if kind != "struct":
            most = MAX_TABLE_ORDINAL if kind == "table" else MAX_ORDINAL
            ordinal = whole_number(ir["ordinal"], 1, most, f"the ordinal of {name}")
        sensitive = "sensitive" in attributes(ir) or _mentions(ir, self._sensitive)
        return types.Member(name, self.type(ir["type"]), ordinal, sensitive, self._default(ir))

    def _default(self, member: IR) -> Any:
        """Return the default of a struct's member. Defaults are deprecated in FIDL."""
        if not member.get("maybe_default_value"):
            return None
        return python_value(self.type(member["type"]), member["maybe_default_value"]["value"])

    def type(self, ir: IR, depth: int = 0) -> types.Type:
        """Read a type from the IR. The type is nested in `depth` other types."""
        if depth > MAX_DEPTH:
            raise FidlError(f"types in types go {MAX_DEPTH} levels deep: the document is broken")
        kind = ir.get("kind_v2") or ir["kind"]
        optional = bool(ir.get("nullable", False))
        found: types.Type
        match kind:
            case "primitive":
                found = types.PRIMITIVES[ir["subtype"]]
            case "string":
                found = types.String(_bound(ir), optional)
            case "vector":
                found = types.Vector(self.type(ir["element_type"], depth + 1), _bound(ir), optional)
            case "array":
                found = types.Array(
                    self.type(ir["element_type"], depth + 1), _count(ir["element_count"])
                )
            case "string_array":
                found = types.StringArray(_count(ir["element_count"]))
            case "handle":
                rights = int(ir.get("rights", SAME_RIGHTS))
                found = types.HandleType(int(ir.get("obj_type", 0)), rights, optional)
            case "endpoint":
                found = types.Endpoint(ir["role"], ir["protocol"], optional)
            case "request":
                found = types.Endpoint("server", ir["subtype"], optional)
            case "internal":
                found = types.FRAMEWORK_ERROR
            case "identifier":
                found = self._identifier(ir["identifier"], optional, depth)
            case _:
                raise FidlError(f"{self.library.name} has a type of the unknown kind {kind}")
        return found

    def is_number(self, type_: types.Type) -> bool:
        """Return whether a type is an enum or bits of this library or of a dependency."""
        if not isinstance(type_, types.Reference):
            return False
        numbers = ("bits", "enum")
        if type_.name.rpartition("/")[0] != self.library.name:
            return self._kinds.get(type_.name) in (*numbers, None)
        own = (each["name"] for kind in numbers for each in self.declarations(kind))
        return type_.name in own

    def payload(self, ir: IR | str) -> types.Type:
        """Return the type of a payload, which older IR gives as the name of a struct."""
        if isinstance(ir, str):
            return self.library.ref(checked_name(ir, full=True))
        return self.type(ir)

    def _identifier(self, name: str, optional: bool, depth: int) -> types.Type:
        checked_name(name, full=True)
        if name in self._new_types:
            return self.type(self._new_types[name], depth + 1)
        if self._kinds.get(name) == "new_type":
            raise FidlError(
                f"{self.library.name} mentions {name}, a new type of another library, and the "
                "document doesn't say what that stands for: mention an alias instead"
            )
        if self._kinds.get(name) in ("protocol", "interface"):
            return types.Endpoint("client", name, optional)
        return self.library.ref(name, optional)

    def protocol_attributes(self, protocol: IR) -> dict[str, Any]:
        """Return the attributes of a protocol.

        A protocol is sensitive, too, if its library or one of its `compose` statements is.
        """
        found = rpc_attributes(protocol)
        parts = protocol.get("composed_protocols") or []
        if self._is_sensitive or any("sensitive" in attributes(each) for each in parts):
            found["sensitive"] = True
        return found

    def methods(self, protocol: IR) -> list[MethodDefinition]:
        """Return the methods of a protocol's definition."""
        found = [MethodDefinition(self, method) for method in protocol["methods"]]
        if "sensitive" in self.protocol_attributes(protocol):
            for method in found:
                method.attributes["sensitive"] = True
        name = protocol["name"]
        check_unique(f"{name} has two methods of one name", (method.name for method in found))
        check_unique(f"{name} has two methods of one ordinal", (method.ordinal for method in found))
        return found


def _may_hold_handles(ir: IR) -> bool:
    """Return whether a type may hold handles, for documents without the key `resource`."""
    shape = ir.get("type_shape_v1") or {}
    return bool(shape.get("is_resource", shape.get("max_handles")))


def _bound(ir: IR) -> int:
    bound = ir.get("maybe_element_count")
    return types.UNBOUNDED if bound is None else _count(bound)


def _count(value: object) -> int:
    return whole_number(value, 0, MAX_COUNT, "a number of elements")


def _numbers(ir: IR) -> tuple[types.Primitive, dict[str, int]]:
    """Return the underlying type and the values of an enum or of bits."""
    name = ir["type"] if isinstance(ir["type"], str) else ir["type"]["subtype"]
    type_ = integer_type(name, ir["name"])
    assert type_.low is not None
    assert type_.high is not None
    return type_, {
        checked_name(member["name"]): whole_number(
            member["value"]["value"], type_.low, type_.high, f"{ir['name']}.{member['name']}"
        )
        for member in ir["members"]
    }


def _sensitive_names(ir: IR, others: Iterable[str]) -> set[str]:
    """Return the names of aliases and new types that are sensitive or mention a sensitive type.

    The IR doesn't list them as types, so they are found by the names that definitions mention.
    """
    left = [*(ir.get("alias_declarations") or []), *(ir.get("new_type_declarations") or [])]
    if "sensitive" in attributes(ir):
        return {*others, *(each["name"] for each in left)}
    found = set(others)
    while True:
        more = {
            each["name"]
            for each in left
            if "sensitive" in attributes(each) or _mentions(each, found)
        } - found
        if not more:
            return found
        found |= more


def _mentions(ir: IR, names: set[str]) -> bool:
    """Return whether a type has a name from `names`, or contains a type with such a name.

    Args:
        ir: The definition of a member or alias.
        names: The names.
    """
    for _ in range(MAX_DEPTH):
        alias = ir.get("experimental_maybe_from_alias") or {}
        if alias.get("name") in names or ir.get("identifier") in names:
            return True
        inner = ir.get("type") or ir.get("element_type")
        if not inner:
            return False
        ir = inner
    return False


def _kinds(ir: IR) -> Iterator[tuple[str, str]]:
    """Yield the name and the kind of each declaration of this library and its dependencies."""
    scopes = [ir.get("declarations", {})]
    scopes += [library.get("declarations", {}) for library in ir.get("library_dependencies", [])]
    for scope in scopes:
        for name, declaration in scope.items():
            yield name, declaration if isinstance(declaration, str) else declaration["kind"]


def openness(protocol: IR) -> str:
    """Return a protocol's openness: `open`, `ajar` or `closed`; `closed` in older documents."""
    found = protocol.get("openness", "closed")
    if found not in ("open", "ajar", "closed"):
        raise FidlError(f"{protocol['name']} is neither open nor ajar nor closed: {found!r:.99}")
    return str(found)


def service_members(service: IR) -> dict[str, str]:
    """Return the full name of each protocol of a service, by the name of the service's member."""
    check_unique(
        f"{service['name']} has two members of one name", (m["name"] for m in service["members"])
    )
    return {
        checked_name(member["name"]): checked_name(
            member["type"].get("protocol") or member["type"]["identifier"], full=True
        )
        for member in service["members"]
    }


def python_value(type_: types.Type, value: Any) -> Any:
    """Convert a constant to its type; a constant of an enum or of bits becomes an int."""
    if isinstance(type_, types.String):
        return value
    if not isinstance(type_, types.Primitive):
        return int(value)
    if type_.name == "bool":
        return value in (True, "true")
    if type_.low is None or type_.high is None:
        return _finite(value)
    return whole_number(value, type_.low, type_.high, f"a constant of the type {type_.name}")


def _finite(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise FidlError(f"{value} is no constant of FIDL: there is none of that size")
    return number


def constant(reader: LibraryReader, ir: IR) -> tuple[types.Type, Any]:
    """Return the type and the value of a constant from its definition."""
    type_ = reader.type(ir["type"])
    if not isinstance(type_, (types.String, types.Primitive)) and not reader.is_number(type_):
        raise FidlError(f"{ir['name']} is a constant of a type that has none")
    return type_, python_value(type_, ir["value"]["value"])
