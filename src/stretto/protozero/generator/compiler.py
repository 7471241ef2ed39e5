"""Generates all files for a schema, for the plugin of protoc and the command line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from keyword import iskeyword

from stretto.protozero.generator import c_emitter, modules, python_emitter, stub_emitter
from stretto.protozero.generator.names import module_of
from stretto.protozero.generator.schema import File, Schema, SchemaError, walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

COMMAND = "protoc-gen-stretto"


@dataclass(slots=True)
class Options:
    """Options of the generator.

    Attributes:
        prefix: package that contains the generated modules; may be empty.
        c: whether to write C headers, too.
    """

    prefix: str = ""
    c: bool = False


def parse_options(text: str) -> Options:
    """Parse `prefix=my.package,c`, the value of `--stretto_opt`.

    Raises:
        SchemaError: an option is unknown or lacks its value.
    """
    options = Options()
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        if name == "prefix" and value and _is_package(value):
            options.prefix = value
        elif part == "c":
            options.c = True
        else:
            raise SchemaError(f"option {part!r}: there are c and prefix=PACKAGE")
    return options


def checked_prefix(name: str) -> str:
    """Check the name of a package, which may be empty, and return the name.

    Raises:
        SchemaError: the text isn't a valid package name.
    """
    if name and not _is_package(name):
        raise SchemaError(f"prefix {name[:100]!r} is no name of a package in Python: my.package")
    return name


def _is_package(name: str) -> bool:
    return all(part.isidentifier() and not iskeyword(part) for part in name.split("."))


def compile_files(files: list[File], names: list[str], options: Options) -> dict[str, str]:
    """Generate code.

    Args:
        files: the files to generate code for, and all their imports.
        names: names of the files to generate code for.
        options: options of the generator.

    Returns:
        The generated texts by their paths.
    """
    schema = Schema(files)
    texts = {}
    for module in modules.per_file(schema, names, options.prefix):
        path = module.name.removeprefix(f"{options.prefix}.").replace(".", "/")
        texts[f"{path}.py"] = python_emitter.emit(module, COMMAND)
        texts[f"{path}.pyi"] = stub_emitter.emit(module, COMMAND)
    if options.c:
        texts.update(_headers(schema, names))
    return texts


def _headers(schema: Schema, names: list[str]) -> Iterator[tuple[str, str]]:
    for file in schema.files:
        if file.name in names:
            messages = [*walk(file.messages)]
            types = [message.name for message in messages] + [enum.name for enum in file.enums]
            setters = [(message.name, message.fields) for message in messages]
            for declared in (file.extensions, *(message.extensions for message in messages)):
                setters += [(field.extendee, [field]) for field in declared]
            path = module_of(file.name).replace(".", "/").removesuffix("_pbzero") + ".pzc.h"
            guard = re.sub(r"\W", "_", path).upper() + "_"
            yield path, c_emitter.emit_setters(schema, setters, guard, COMMAND, types)
