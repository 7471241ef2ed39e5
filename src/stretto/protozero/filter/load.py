"""Creates the filter of a TraceConfig."""

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
    """Create a message filter.

    Args:
        bytecode: Bytecode from `SchemaFilter.generate` or Perfetto's `proto_filter`.
        overlay: Overlay of the bytecode; may be empty.
        strings: Rewrites the strings selected by the bytecode; None to keep them unchanged.
        root: Field numbers that lead from the outermost message to the filtered messages.

    Raises:
        ConfigError: The bytecode is damaged, or has no message at `root`.
    """
    try:
        made = _native.MessageFilter(bytecode, overlay, strings or None)
        made.set_root(root)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    return made
