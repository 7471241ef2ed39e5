"""Encodes values to bytes. Importing this package registers the encoders of all types."""

from __future__ import annotations

from stretto_fidl.codec.encoding import envelopes, sequences, values

__all__ = ["envelopes", "sequences", "values"]
