"""The resolvers that URIs name."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stretto.analysis.perfetto.common.exceptions import PerfettoException

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stretto.analysis.perfetto.trace_uri_resolver.resolver import (
        TraceContent,
        TraceUri,
        TraceUriResolver,
    )

    TraceReference = TraceUriResolver | TraceUri | TraceContent
    TraceListReference = TraceReference | list[TraceReference]

_PIECE_BYTES = 1 << 20


class ResolverRegistry:
    """Finds what references stand for."""

    @dataclass
    class Result:
        """A trace as pieces of bytes, and its metadata."""

        generator: Iterable[bytes]
        metadata: dict[str, str]

    def __init__(self, resolvers: Iterable[type[TraceUriResolver]] = ()) -> None:
        self.registry: dict[str | None, type[TraceUriResolver]] = {}
        for resolver in resolvers:
            self.register(resolver)

    def register(self, provider: type[TraceUriResolver]) -> None:
        """Add a class of resolvers, under its PREFIX."""
        self.registry[provider.PREFIX] = provider

    def resolve(self, ref: Any) -> list[Result]:
        """Return the traces of a reference, or of a list of them.

        Raises:
            PerfettoException: A URI names an unknown resolver.
        """
        if isinstance(ref, list):
            return [found for each in ref for found in self.resolve(each)]
        if isinstance(ref, str | os.PathLike):
            ref = self._resolver(os.fspath(ref))
        if hasattr(ref, "resolve"):
            return [
                self.Result(found.generator, {**outer.metadata, **found.metadata})
                for outer in ref.resolve()
                for found in self.resolve(outer.trace)
            ]
        if hasattr(ref, "read"):
            return [self.Result(iter(lambda: ref.read(_PIECE_BYTES), b""), {})]
        return [self.Result(ref, {})]

    def _resolver(self, uri: str) -> TraceUriResolver:
        prefix = None if uri.startswith(("/", ".")) or ":" not in uri else uri.partition(":")[0]
        if prefix is not None and len(prefix) == 1:  # A drive of Windows.
            prefix = None
        if prefix not in self.registry:
            raise PerfettoException(f"there is no resolver {prefix!r} for {uri!r}")
        return self.registry[prefix].from_trace_uri(uri)
