"""The version of Stretto, which services and traces report."""

from __future__ import annotations

VERSION = "0.1.0"
SDK_VERSION = f"stretto {VERSION}"
"""The SDK version that producers send to a service."""
