"""Makes the classes of a library from its IR at run time.

    namespace = load(json.loads(path.read_text()))
    message = namespace.Greeting(name="you")

`bindings.generator` writes modules with the same classes.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from stretto_fidl.bindings.ir import (
    LibraryReader,
    MethodDefinition,
    constant,
    openness,
    reading,
    service_members,
)
from stretto_fidl.bindings.ir_attributes import attributes
from stretto_fidl.bindings.numbers import Bits, Enum
from stretto_fidl.bindings.protocols import Method, Protocol, Service
from stretto_fidl.bindings.records import Struct, Table, Union
from stretto_fidl.codec import types
from stretto_fidl.errors import FidlError
from stretto_fidl.python_names import OF_MODULES, python_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

BASES: dict[type[types.Named], type] = {
    types.Enum: Enum,
    types.Bits: Bits,
    types.Struct: Struct,
    types.Table: Table,
    types.Union: Union,
}
"""The base classes by kind of definition."""


class Namespace(SimpleNamespace):
    """A namespace whose attributes are the classes and constants of a library.

    The attribute `FIDL_LIBRARY` is the library itself.
    """

    FIDL_LIBRARY: types.Library


def load(ir: Mapping[str, Any], dependencies: Iterable[Any] = ()) -> Namespace:
    """Make the classes of a library.

    Args:
        ir: The parsed JSON IR.
        dependencies: The namespaces or generated modules of the libraries that this library uses.

    Returns:
        The namespace with a class for each struct, table, union, enum, bits, protocol and
        service, and a value for each constant, by their names without the library.

    Raises:
        FidlError: The IR is malformed, or contains something unknown.
    """
    libraries = tuple(each.FIDL_LIBRARY for each in dependencies)
    with reading():
        return _load(LibraryReader(ir, libraries))


def _load(reader: LibraryReader) -> Namespace:
    namespace = Namespace(FIDL_LIBRARY=reader.library)
    for named, declaration in reader.named_types():
        reader.library.add(named)
        _define(namespace, named, declaration)
    for named, declaration in reader.external_structs():
        if not any(named.name in library.types for library in reader.library.dependencies):
            reader.library.add(named)
            _define(Namespace(FIDL_LIBRARY=reader.library), named, declaration)
    for declaration in reader.declarations("protocol"):
        _add_protocol(namespace, reader, declaration)
    for declaration in reader.declarations("service"):
        body = {"NAME": declaration["name"], "MEMBERS": service_members(declaration)}
        _add(namespace, declaration, Service, body)
    for declaration in reader.declarations("const"):
        value = _of_its_class(*constant(reader, declaration))
        setattr(namespace, short_name(declaration["name"]), value)
    return namespace


def _of_its_class(type_: types.Type, value: Any) -> Any:
    """Return a constant of an enum or bits as a member of its class.

    Return it as an int if the library that declares the class isn't loaded.
    """
    try:
        found, _ = types.resolve(type_)
    except FidlError:
        return value
    return found.cls(value) if isinstance(found, types.Enum) else value


def short_name(name: str) -> str:
    """Return the Python name for the last part of a full name: `Point` for `library/Point`."""
    return python_name(name.rpartition("/")[2], OF_MODULES)


def _define(namespace: Namespace, named: types.Named, ir: Mapping[str, Any]) -> None:
    body: dict[str, Any] = {"TYPE": named}
    if isinstance(named, types.Union):
        body["__slots__"] = ()
    elif isinstance(named, types.Struct):
        body["__slots__"] = tuple(member.python_name for member in named.members)
    _add(namespace, ir, BASES[type(named)], body)


def _add(namespace: Namespace, ir: Mapping[str, Any], base: type, body: dict[str, Any]) -> None:
    name = short_name(ir["name"])
    scope = {"__doc__": docstring(ir), "__module__": f"fidl.{namespace.FIDL_LIBRARY.name}", **body}
    setattr(namespace, name, type(name, (base,), scope))


def docstring(ir: Mapping[str, Any]) -> str | None:
    """Return the text of a definition's doc comment."""
    doc = attributes(ir).get("doc")
    return None if doc is None else "\n".join(line.strip() for line in doc.strip().splitlines())


def _add_protocol(namespace: Namespace, reader: LibraryReader, ir: Mapping[str, Any]) -> None:
    found = reader.protocol_attributes(ir)
    body = {
        "NAME": ir["name"],
        "OPENNESS": openness(ir),
        "TRANSPORT": found.get("transport", "Channel"),
        "ATTRIBUTES": found,
        "METHODS": tuple(_method(method) for method in reader.methods(ir)),
    }
    _add(namespace, ir, Protocol, body)


def _method(definition: MethodDefinition) -> Method:
    return Method(
        definition.name,
        definition.ordinal,
        definition.kind,
        strict=definition.strict,
        attributes=definition.attributes,
        composed=definition.composed,
        **definition.types,
    )
