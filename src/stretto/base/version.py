"""Which Stretto this is; services and traces name it."""

from __future__ import annotations

VERSION = "0.1.0"
SDK_VERSION = f"stretto {VERSION}"
"""As producers tell a service."""
