"""Generates and imports modules for a test without writing files."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from stretto.protozero.generator import proto_parser, python_emitter
from stretto.protozero.generator.compiler import Options, compile_files
from stretto.protozero.generator.modules import Module, split
from stretto.protozero.generator.schema import File, Schema


def module_of(proto: Path, name: str) -> tuple[File, Module]:
    """Return the parsed .proto file, and a plan of the Python module `name` with its messages."""
    (file,) = proto_parser.parse([proto])
    (module,) = split(Schema([file]), [(name, "A sample.", file.type_names())])
    return file, module


def load(module: Module) -> Any:
    """Generate the source of a planned module and import it."""
    return load_text(python_emitter.emit(module, "a test"), module.name)


def load_files(folder: Path, names: list[str], prefix: str) -> list[Any]:
    """Import the modules of .proto files and of their imports, in the package `prefix`."""
    files = proto_parser.parse_imported(names, [folder])
    texts = compile_files(files, [file.name for file in files], Options(prefix))
    return [
        load_text(text, f"{prefix}.{path.removesuffix('.py').replace('/', '.')}")
        for path, text in texts.items()
        if path.endswith(".py")
    ]


def load_text(text: str, name: str) -> Any:
    """Import Python source as the module `name`."""
    made = ModuleType(name)
    package, _, _ = name.partition(".")
    sys.modules.setdefault(package, ModuleType(package))
    sys.modules[name] = made
    exec(compile(text, name, "exec"), vars(made))
    return made
