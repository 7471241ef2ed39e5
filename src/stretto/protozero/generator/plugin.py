"""The protoc plugin `protoc-gen-stretto`, which `protoc --stretto_out=FOLDER` runs.

protoc writes a CodeGeneratorRequest to its standard input, and reads a CodeGeneratorResponse from
its standard output (plugin.proto):

    request   1 file_to_generate*   2 parameter   15 proto_file*
    response  1 error   2 supported_features   15 file* { 1 name   15 content }
"""

from __future__ import annotations

import sys

from stretto.base.errors import StrettoError
from stretto.protozero.generator.compiler import compile_files, parse_options
from stretto.protozero.generator.descriptor_set import Node, read_descriptor_set
from stretto.protozero.wire import bytes_field, varint_field

FEATURE_PROTO3_OPTIONAL = 1


def respond(request: bytes) -> bytes:
    """Return the response to a request; an invalid schema is reported in the response."""
    try:
        node = Node(request)
        texts = compile_files(
            read_descriptor_set(request, 15), node.texts(1), parse_options(node.text(2))
        )
    except StrettoError as error:
        return bytes_field(1, str(error).encode())
    files = (
        bytes_field(15, bytes_field(1, path.encode()) + bytes_field(15, text.encode()))
        for path, text in texts.items()
    )
    return varint_field(2, FEATURE_PROTO3_OPTIONAL) + b"".join(files)


def main() -> None:
    """Read the request from standard input and write the response to standard output."""
    sys.stdout.buffer.write(respond(sys.stdin.buffer.read()))
