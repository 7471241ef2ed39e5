"""Where the documentation of this distribution lies."""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
