"""Schemas of the files that ship with protobuf, for files that import them."""

from __future__ import annotations

import base64

from stretto.protozero.generator.descriptor_set import read_descriptor_set
from stretto.protozero.well_known.descriptors import FILE_DESCRIPTOR_SET

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.protozero.generator.schema import File


def well_known_files(name: str) -> list[File]:
    """Return a file and all its imports; each one follows its imports.

    Args:
        name: path as in an import, `google/protobuf/timestamp.proto`; one of `names.WELL_KNOWN`.
    """
    files = {file.name: file for file in read_descriptor_set(base64.b64decode(FILE_DESCRIPTOR_SET))}
    wanted: dict[str, File] = {}

    def want(name: str) -> None:
        for imported in files[name].imports:
            want(imported)
        wanted[name] = files[name]

    want(name)
    return list(wanted.values())
