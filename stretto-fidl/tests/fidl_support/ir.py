"""Makes the JSON IR of small FIDL libraries from short texts, without the compiler.

    library("test", structs={"Point": "x int32, y int32"}, …)

Types are written as in FIDL's old syntax, in these forms:

    uint32   string   string:5   string?   vector<T>:3?   array<T,4>   Name   Name?
    handle   handle:event   handle:event,0xc003   handle?   client:P   server:P?
    string_array<8>   framework_error

Members of tables and unions have ordinals: "1: x uint32, 3: name string".
A `@` before a member's name makes it sensitive.
"""

from __future__ import annotations

import re
from typing import Any

from stretto_fidl.codec.handle import OBJECT_TYPES, SAME_RIGHTS

PRIMITIVES = {
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float32", "float64",
}  # fmt: skip


def type_ir(text: str, name: str = "test") -> dict[str, Any]:
    """Return the IR of a use of a type in a library."""
    text = text.strip()
    optional = text.endswith("?")
    base = text.removesuffix("?")
    if match := re.fullmatch(r"(vector|array)<(.+)>(?::(\d+))?", base):
        kind, inner, bound = match.groups()
        if kind == "array":
            inner, _, count = inner.rpartition(",")
            return {
                "kind": "array",
                "element_type": type_ir(inner, name),
                "element_count": int(count),
            }
        found = {"kind": "vector", "element_type": type_ir(inner, name), "nullable": optional}
        return found | ({"maybe_element_count": int(bound)} if bound else {})
    if match := re.fullmatch(r"string_array<(\d+)>", base):
        return {"kind": "string_array", "element_count": int(match[1])}
    head, _, tail = base.partition(":")
    if head == "string":
        found = {"kind": "string", "nullable": optional}
        return found | ({"maybe_element_count": int(tail)} if tail else {})
    if head == "handle":
        subtype, _, rights = tail.partition(",")
        return {
            "kind": "handle",
            "obj_type": OBJECT_TYPES[subtype or "handle"],
            "subtype": subtype or "handle",
            "rights": int(rights, 0) if rights else SAME_RIGHTS,
            "nullable": optional,
        }
    if head in ("client", "server"):
        return {
            "kind": "endpoint",
            "role": head,
            "protocol": f"{name}/{tail}",
            "nullable": optional,
        }
    if base in PRIMITIVES:
        return {"kind": "primitive", "subtype": base}
    if base == "framework_error":
        return {"kind": "internal", "subtype": "framework_error"}
    full = base if "/" in base else f"{name}/{base}"
    return {"kind": "identifier", "identifier": full, "nullable": optional}


def _split(text: str) -> list[str]:
    """Split a text at each comma followed by a space, except between `<` and `>`.

    Alternatives of a handle type are written without a space after the comma.
    """
    parts = re.split(r",\s+(?![^<]*>)", text.strip()) if text.strip() else []
    return [part.strip().rstrip(",") for part in parts]


def attribute(name: str, value: str | None = None) -> dict[str, Any]:
    """Return the IR of an attribute with one argument or none."""
    literal = {"kind": "literal", "value": value}
    arguments = [] if value is None else [{"name": "value", "type": "string", "value": literal}]
    return {"name": name, "arguments": arguments}


def members_ir(text: str, name: str = "test") -> list[dict[str, Any]]:
    """Return the IR of the members that a text lists: members of a struct, table or union."""
    found = []
    for part in _split(text):
        ordinal, _, rest = part.rpartition(": ") if re.match(r"\d+: ", part) else ("", "", part)
        member, _, mention = rest.partition(" ")
        ir: dict[str, Any] = {"name": member.lstrip("@"), "type": type_ir(mention, name)}
        if ordinal:
            ir["ordinal"] = int(ordinal)
        if member.startswith("@"):
            ir["maybe_attributes"] = [attribute("sensitive")]
        found.append(ir)
    return found


def constant_ir(value: Any) -> dict[str, Any]:
    """Return the IR of a constant's value."""
    return {"kind": "literal", "value": str(value)}


def _numbers(name: str, definitions: dict[str, tuple[str, str, dict[str, int]]], bits: bool) -> Any:
    found = []
    for each, (strictness, underlying, values) in definitions.items():
        members = [{"name": key, "value": constant_ir(value)} for key, value in values.items()]
        type_: Any = {"kind": "primitive", "subtype": underlying} if bits else underlying
        found.append(
            {
                "name": f"{name}/{each}",
                "type": type_,
                "strict": strictness == "strict",
                "members": members,
            }
        )
    return found


def library(
    name: str = "test",
    *,
    structs: dict[str, str] | None = None,
    tables: dict[str, str] | None = None,
    unions: dict[str, str] | None = None,
    enums: dict[str, tuple[str, str, dict[str, int]]] | None = None,
    bits: dict[str, tuple[str, str, dict[str, int]]] | None = None,
    consts: dict[str, tuple[str, Any]] | None = None,
    protocols: dict[str, list[dict[str, Any]]] | None = None,
) -> dict[str, Any]:
    """Return the IR of a library.

    Tables and unions are value types unless their name contains "Resource". Unions are flexible
    unless their name contains "Strict".
    """
    declarations = dict.fromkeys((f"{name}/{each}" for each in protocols or {}), "protocol")
    return {
        "name": name,
        "library_dependencies": [],
        "bits_declarations": _numbers(name, bits or {}, True),
        "enum_declarations": _numbers(name, enums or {}, False),
        "struct_declarations": [
            {"name": f"{name}/{each}", "members": members_ir(text, name), "resource": True}
            for each, text in (structs or {}).items()
        ],
        "table_declarations": [
            {
                "name": f"{name}/{each}",
                "members": members_ir(text, name),
                "strict": False,
                "resource": "Resource" in each,
            }
            for each, text in (tables or {}).items()
        ],
        "union_declarations": [
            {
                "name": f"{name}/{each}",
                "members": members_ir(text, name),
                "strict": "Strict" in each,
                "resource": "Resource" in each,
            }
            for each, text in (unions or {}).items()
        ],
        "const_declarations": [
            {"name": f"{name}/{each}", "type": type_ir(kind, name), "value": constant_ir(value)}
            for each, (kind, value) in (consts or {}).items()
        ],
        "protocol_declarations": [
            {"name": f"{name}/{each}", "openness": "open", "methods": methods}
            for each, methods in (protocols or {}).items()
        ],
        "declarations": declarations,
    }
