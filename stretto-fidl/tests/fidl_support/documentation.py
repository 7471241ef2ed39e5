"""Path of the documentation folder of stretto-fidl."""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
