"""From what a TraceConfig says of a filter to the filter."""

from __future__ import annotations

from stretto import _native
from stretto.base.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from stretto.protozero.filter.strings import StringFilter


def load_filter(
    bytecode: bytes,
    overlay: bytes = b"",
    strings: StringFilter | None = None,
    root: Sequence[int] = (),
) -> _native.MessageFilter:
    """Make a filter of messages.

    Args:
        bytecode: As `SchemaFilter.generate` and Perfetto's `proto_filter` make it.
        overlay: What corrects it, or nothing.
        strings: Rewrites the strings that the bytecode names; without, they stay.
        root: The fields, from the outermost message, that lead to those to be filtered.

    Raises:
        ConfigError: The bytecode is damaged, or has no message at `root`.
    """
    try:
        made = _native.MessageFilter(bytecode, overlay, strings or None)
        made.set_root(root)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    return made
