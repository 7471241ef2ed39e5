"""Generates code without protoc: `python -m stretto.protozero.generator --help`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from stretto.base.errors import StrettoError
from stretto.protozero.generator import descriptor_set, proto_parser
from stretto.protozero.generator.compiler import Options, checked_prefix, compile_files
from stretto.protozero.generator.names import well_known_module
from stretto.protozero.generator.schema import File, SchemaError

_EPILOG = """
The schema comes from .proto files (found in the folders of -I), from those of a
FileDescriptorSet, or from the installed modules that protoc's Python plugin
wrote. foo/bar.proto becomes OUT/foo/bar_pbzero.py and its stub.
"""


def _arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m stretto.protozero.generator",
        description="Generate classes for protobuf messages.",
        epilog=_EPILOG,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=".proto files (default: all)")
    parser.add_argument("-I", dest="folders", action="append", metavar="FOLDER", help="default: .")
    parser.add_argument("--descriptor-set", type=Path, metavar="FILE")
    parser.add_argument("--module", action="append", default=[], help="as package.name_pb2")
    parser.add_argument("--out", type=Path, default=Path(), metavar="FOLDER")
    parser.add_argument("--prefix", default="", metavar="PACKAGE", help="what package OUT is")
    parser.add_argument("--c", action="store_true", help="C headers too")
    return parser.parse_args(arguments)


def _read(given: argparse.Namespace) -> tuple[list[File], list[str]]:
    """Return the files of the schema, and the names of the files to generate code for."""
    names: list[str] = given.names
    if given.descriptor_set:
        try:
            files = descriptor_set.read_descriptor_set(given.descriptor_set.read_bytes())
        except OSError as error:
            raise SchemaError(f"{given.descriptor_set}: {error.strerror}") from error
    elif given.module:
        by_name = {
            file.name: file for name in given.module for file in descriptor_set.read_module(name)
        }
        files = list(by_name.values())
    else:
        folders = [Path(folder) for folder in given.folders or ["."]]
        return proto_parser.parse_imported(names, folders), names
    known = {file.name for file in files}
    for name in names:
        if name not in known:
            raise SchemaError(f"there is no {name}; there are {', '.join(sorted(known))}")
    own = [name for name in known if not well_known_module(name)]
    return files, names or own or list(known)


def main(arguments: list[str]) -> None:
    """Write the generated files; exit with a message if a schema is invalid."""
    given = _arguments(arguments)
    try:
        files, names = _read(given)
        if not names:
            raise SchemaError("name .proto files, a --descriptor-set or a --module")
        texts = compile_files(files, names, Options(checked_prefix(given.prefix), given.c))
    except StrettoError as error:
        raise SystemExit(f"{error}") from error
    for path, text in texts.items():
        target = given.out / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
