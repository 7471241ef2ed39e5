"""Decodes bytes to values. Importing this package registers the decoders of all types."""

from __future__ import annotations

from stretto_fidl.codec.decoding import envelopes, sequences, values

__all__ = ["envelopes", "sequences", "values"]
