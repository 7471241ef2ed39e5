"""Our options in .proto files: `stretto/trace_options.proto`.

    option (stretto.trace_all) = "CATEGORY";    of a service; our parser takes (stretto.trace), too
    option (stretto.trace) = "CATEGORY";        of a method

Options of others are none of our business, but one that is ours and misspelled, misplaced or not
imported would mean that what somebody wants to see is never traced: it is an error, as to protoc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.protozero.generator.schema import TRACE, TRACE_ALL, SchemaError

if TYPE_CHECKING:
    from stretto.protozero.generator.schema import File, Schema

TRACE_OPTIONS = "stretto/trace_options.proto"
OF_SERVICES = (TRACE_ALL, TRACE)
OF_METHODS = (TRACE,)

_PACKAGE = "stretto"


def own_option(name: str, package: str) -> str | None:
    """The full name of an option of ours, known or not.

    Args:
        name: As it stands there: `(stretto.trace)`, `(.stretto.trace)`, `deprecated`.
        package: Of the file: names are looked up from there outwards.

    Returns:
        `stretto.trace`; None for an option of others.
    """
    if not name.startswith("("):
        return None
    full = name[1:].replace(")", "")
    if full.startswith("."):
        full = full[1:]
    else:
        outer, *inner = package.split(".")
        if outer == _PACKAGE and f"{_PACKAGE}.{full}" in OF_SERVICES:
            return f"{_PACKAGE}.{full}"
        if _PACKAGE in inner:
            return None
    return full if full.startswith(f"{_PACKAGE}.") else None


def check_import(file: File, schema: Schema) -> None:
    """A file that has options of ours imports them, itself or by an import's public one.

    Raises:
        SchemaError: It doesn't.
    """
    if not file.trace_option_at:
        return
    public = {each.name: each.public for each in schema.files}
    waiting, seen = list(file.imports), set(file.imports)
    while waiting:
        found = [name for name in public.get(waiting.pop(), ()) if name not in seen]
        waiting += found
        seen.update(found)
    if TRACE_OPTIONS not in seen:
        raise SchemaError(
            f'{file.trace_option_at}: this option needs `import "{TRACE_OPTIONS}";`, which this '
            "file lacks"
        )
