"""Our options in .proto files: `stretto/trace_options.proto`.

    option (stretto.trace_all) = "CATEGORY";    for a service
    option (stretto.trace) = "CATEGORY";        for a method

Our own parser accepts `(stretto.trace)` for services, too. Other options are ignored. If one of our
options is misspelled, misplaced or not imported, that is an error, as with protoc: otherwise
methods would silently not be traced.
"""

from __future__ import annotations

from stretto.protozero.generator.schema import TRACE, TRACE_ALL, SchemaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.protozero.generator.schema import File, Schema

TRACE_OPTIONS = "stretto/trace_options.proto"
OF_SERVICES = (TRACE_ALL, TRACE)
OF_METHODS = (TRACE,)

_PACKAGE = "stretto"


def own_option(name: str, package: str) -> str | None:
    """Return the full name of an option in our package, whether it exists or not.

    Args:
        name: The name in the file: `(stretto.trace)`, `(.stretto.trace)`, `deprecated`.
        package: The file's package, in which the search for a relative name begins.

    Returns:
        The name, such as `stretto.trace`; None for options of other packages.
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
    """Check that a file with our options imports them, directly or by a public import.

    Raises:
        SchemaError: The import is missing.
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
