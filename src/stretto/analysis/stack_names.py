"""The functions of the call stacks in a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.analysis.trace_tables import table_rows

if TYPE_CHECKING:
    from stretto import _native


class StackNames:
    """The names of the calls of each callsite."""

    def __init__(self, importer: _native.TraceImporter) -> None:
        files = [row["name"] for row in table_rows(importer, "stack_profile_mapping")]
        frames = [
            (row["name"] or "?", _file(files[row["mapping"]] if row["mapping"] is not None else ""))
            for row in table_rows(importer, "stack_profile_frame")
        ]
        self._callsites = [
            (row["parent_id"], frames[row["frame_id"]])
            for row in table_rows(importer, "stack_profile_callsite")
        ]

    def functions(self, callsite: int) -> list[tuple[str, str]]:
        """Return the name and the file of each call, the innermost first."""
        found: list[tuple[str, str]] = []
        at: int | None = callsite
        while at is not None:
            at, function = self._callsites[at]
            found.append(function)
        return found


def _file(mapping: str | None) -> str:
    # The importer puts a slash before each path, also before `<frozen importlib>`.
    return (mapping or "").removeprefix("/") if (mapping or "").startswith("/<") else mapping or ""
