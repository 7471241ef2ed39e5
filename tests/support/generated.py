"""Modules generated for a test, without files."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from stretto.protozero.generator import proto_parser, python_emitter
from stretto.protozero.generator.modules import Module, split
from stretto.protozero.generator.schema import File, Schema


def module_of(proto: Path, name: str) -> tuple[File, Module]:
    """Parse a .proto file, and plan the module `name` for all of it."""
    (file,) = proto_parser.parse([proto])
    (module,) = split(Schema([file]), [(name, "A sample.", file.type_names())])
    return file, module


def load(module: Module) -> Any:
    """Import the text that the emitter writes."""
    made = ModuleType(module.name)
    sys.modules[module.name] = made
    exec(compile(python_emitter.emit(module, "a test"), module.name, "exec"), vars(made))
    return made
