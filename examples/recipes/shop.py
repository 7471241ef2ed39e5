"""A leak: a shop keeps the sessions of all visitors, and nothing removes them.

stretto record --heap --heap-every 1s --object-graph examples/recipes/shop.py
"""

from __future__ import annotations

import time

VISITORS = 1400
PAGES = 100


class Session:
    """What a visitor has seen."""

    def __init__(self, visitor: int) -> None:
        self.pages = [f"page {page} of {visitor}".ljust(250) for page in range(PAGES)]


class Shop:
    """Serves visitors."""

    def __init__(self) -> None:
        self.sessions: dict[int, Session] = {}

    def visit(self, visitor: int) -> None:
        """Serves a visitor, whose session stays."""
        self.sessions[visitor] = Session(visitor)
        time.sleep(0.002)


shop = Shop()


def main() -> None:
    for visitor in range(VISITORS):
        shop.visit(visitor)


if __name__ == "__main__":
    main()
