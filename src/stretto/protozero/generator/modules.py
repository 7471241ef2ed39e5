"""How the types of a schema are spread over Python modules."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stretto.protozero.generator.schema import Enum, Message, Schema, Service, walk

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass
class Module:
    """One generated module and what it defines.

    `homes` tells, for every outermost type of all modules, which module has it.
    """

    name: str
    doc: str
    schema: Schema
    homes: dict[str, str]
    messages: list[Message] = field(default_factory=list)
    enums: list[Enum] = field(default_factory=list)
    services: list[Service] = field(default_factory=list)

    def path(self, name: str) -> str:
        """A full name without its package: where the class is in its module."""
        return self.schema.split_package(name)[1]

    def home(self, name: str) -> str:
        """The module that defines a type."""
        return self.homes[self.schema.outermost(name)]

    def reference(self, name: str) -> str:
        """A type as a table names it: `PATH`, or `MODULE/PATH` if it is another module's."""
        home = self.home(name)
        return self.path(name) if home == self.name else f"{home}/{self.path(name)}"

    def all_enums(self) -> Iterator[Enum]:
        """The enums outside of messages, then those inside."""
        yield from self.enums
        for message in walk(self.messages):
            yield from message.enums

    def method_ids(self) -> Iterator[tuple[str, dict[str, int]]]:
        """For each service the name of a constant, and its method ids by name."""
        for service in self.services:
            local = service.name.rpartition(".")[2]
            ids = {method.name: at for at, method in enumerate(service.methods, 1)}
            yield f"{constant(local)}_METHODS", ids


def split(schema: Schema, plan: list[tuple[str, str, list[str]]]) -> list[Module]:
    """Spread a schema over modules.

    Args:
        schema: all types.
        plan: for each module its name, its docstring, and the messages it is
            for, by full name. It gets all they need that no module before it
            has.
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
    return modules


def constant(name: str) -> str:
    """CamelCase and dots to UPPER_CASE."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return name.replace(".", "_").upper()
