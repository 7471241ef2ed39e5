"""The resolver of paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.analysis.perfetto.trace_uri_resolver.resolver import TraceUriResolver

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Self

_PIECE_BYTES = 1 << 20


class PathUriResolver(TraceUriResolver):
    """Resolves a path. The path is in the metadata, as `_path`."""

    def __init__(self, path: str) -> None:
        self.path = path

    def resolve(self) -> list[TraceUriResolver.Result]:
        """Return the trace."""
        return [self.Result(file_generator(self.path), {"_path": self.path})]

    @classmethod
    def from_trace_uri(cls, uri: str) -> Self:
        """Make a resolver of a path."""
        return cls(uri)


def file_generator(path: str) -> Generator[bytes, None, None]:
    """Give the bytes of a file. It is opened at the first piece."""
    with open(path, "rb") as file:
        while piece := file.read(_PIECE_BYTES):
            yield piece
