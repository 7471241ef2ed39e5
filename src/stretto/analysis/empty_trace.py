"""Traces without any content."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.analysis.missing import MISSING
from stretto.analysis.table_rows import rows_of
from stretto.base.errors import StrettoError

if TYPE_CHECKING:
    from stretto import _native


class EmptyTraceError(StrettoError):
    """A trace has nothing to convert."""


def has_nothing(importer: _native.TraceImporter) -> bool:
    """Return whether an imported trace has no thread, no track, and nothing that can't be read."""
    threads = [row for row in rows_of(importer, "thread") if not row["is_idle"]]
    unread = any(row["value"] for row in rows_of(importer, "stats") if row["name"] in MISSING)
    return not (threads or importer.rows("__intrinsic_track")[1] or unread)
