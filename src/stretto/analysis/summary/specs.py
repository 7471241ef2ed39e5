"""Reads specs of trace summaries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.protos.trace_processor import TraceSummarySpec
from stretto.protozero.text_parser import parse_text

if TYPE_CHECKING:
    from collections.abc import Iterable


def read_specs(specs: Iterable[TraceSummarySpec | str | bytes]) -> TraceSummarySpec:
    """Return one spec with the content of all.

    Args:
        specs: Specs as messages, as text, or encoded.

    Raises:
        TextFormatError: A text is malformed.
        DecodeError: An encoded spec is malformed.
    """
    merged = TraceSummarySpec()
    for spec in specs:
        if isinstance(spec, str):
            merged.merge(parse_text(spec, TraceSummarySpec))
        elif isinstance(spec, TraceSummarySpec):
            merged.merge(spec)
        else:
            merged.merge(TraceSummarySpec.decode(spec))
    return merged
