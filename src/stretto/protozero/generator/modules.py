"""Assigns the types of a schema to Python modules."""

from __future__ import annotations

from dataclasses import dataclass, field

from stretto.protozero.generator.names import constant, module_of, type_path, well_known_module
from stretto.protozero.generator.schema import (
    Enum,
    Field,
    Message,
    Schema,
    SchemaError,
    Service,
    walk,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass
class Module:
    """One generated module and its definitions.

    `homes` maps the outermost types of all modules to their modules. `extensions` are the
    extensions declared outside of messages, each with its package. `public` are modules whose types
    this module exports, too.
    """

    name: str
    doc: str
    schema: Schema
    homes: dict[str, str]
    messages: list[Message] = field(default_factory=list)
    enums: list[Enum] = field(default_factory=list)
    services: list[Service] = field(default_factory=list)
    extensions: list[tuple[str, Field]] = field(default_factory=list)
    public: list[str] = field(default_factory=list)

    def path(self, name: str) -> str:
        """Return the path of a message or enum class in its module."""
        return type_path(self.schema.split_package(name)[1])

    def home(self, name: str) -> str:
        """Return the module that defines a type."""
        outermost = self.schema.outermost(name)
        if outermost not in self.homes:
            raise SchemaError(f"{self.name} needs {outermost}, and no module has it")
        return self.homes[outermost]

    def reference(self, name: str) -> str:
        """Return a type's name in tables: `PATH`, or `MODULE/PATH` in another module."""
        home = self.home(name)
        return self.path(name) if home == self.name else f"{home}/{self.path(name)}"

    def all_enums(self) -> Iterator[Enum]:
        """Yield the enums outside of messages, then those inside."""
        yield from self.enums
        for message in walk(self.messages):
            yield from message.enums

    def method_ids(self) -> Iterator[tuple[str, dict[str, int]]]:
        """Yield (name of a constant, method ids by name) for each service."""
        for service in self.services:
            local = service.name.rpartition(".")[2]
            ids = {method.name: at for at, method in enumerate(service.methods, 1)}
            yield f"{constant(local)}_METHODS", ids

    def traced_methods(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield (name of a constant, categories by method name) for each traced service."""
        for service in self.services:
            local = service.name.rpartition(".")[2]
            categories = {
                method.name: service.trace if method.trace is None else method.trace
                for method in service.methods
            }
            if traced := {name: category for name, category in categories.items() if category}:
                yield f"{constant(local)}_TRACE", traced


def per_file(schema: Schema, names: list[str], prefix: str = "") -> list[Module]:
    """Return one module for each file; the types of protobuf's own files are in `well_known`.

    Args:
        schema: the files and all their imports.
        names: names of the files to create modules for.
        prefix: package that contains the modules; may be empty.
    """

    def place(name: str) -> str:
        shipped = "" if name in names else well_known_module(name)
        return shipped or module_of(name, prefix)

    homes = {name: place(file.name) for file in schema.files for name in file.type_names()}
    modules = []
    for file in schema.files:
        if file.name in names:
            module = Module(place(file.name), f"{file.name}.", schema, homes)
            module.messages, module.enums = file.messages, file.enums
            module.services = file.services
            module.extensions = [(file.package, extension) for extension in file.extensions]
            module.public = [place(name) for name in file.public]
            modules.append(module)
    return modules


def split(schema: Schema, plan: list[tuple[str, str, list[str]]]) -> list[Module]:
    """Distribute a schema over modules.

    Args:
        schema: all types.
        plan: for each module its name, its docstring, and the full names of its messages. The types
            of their fields are added, unless an earlier module defines these types.
    """
    homes: dict[str, str] = {}
    modules = []
    for name, doc, roots in plan:
        for type_name in schema.closure(roots):
            homes.setdefault(type_name, name)
        modules.append(Module(name, doc, schema, homes))
    for module in modules:
        for file in schema.files:
            module.messages += [m for m in file.messages if homes.get(m.name) == module.name]
            module.enums += [e for e in file.enums if homes.get(e.name) == module.name]
            module.services += [
                s for s in file.services if homes.get(s.methods[0].argument) == module.name
            ]
            module.extensions += [
                (file.package, extension)
                for extension in file.extensions
                if module.home(extension.extendee) == module.name
            ]
    return modules
