"""A row of a benchmark's table."""

from __future__ import annotations

import json
from typing import NamedTuple


class Row(NamedTuple):
    """A figure of Stretto beside one of a peer, or beside a limit."""

    name: str
    ours: float
    peer: float
    unit: str

    def as_json(self) -> str:
        """Return the row as tools/bench_table.py reads it."""
        ratio = round(self.ours / self.peer, 3) if self.peer else 0.0
        figures = {"ours": round(self.ours, 4), "peer": round(self.peer, 4)}
        return json.dumps({"name": self.name, **figures, "unit": self.unit, "ratio": ratio})
