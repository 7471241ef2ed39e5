"""What FIDL raises, under one root."""

from __future__ import annotations

from stretto.base.errors import StrettoError


class FidlError(StrettoError):
    """Root of what the FIDL packages raise."""
