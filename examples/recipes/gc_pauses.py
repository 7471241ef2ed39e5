"""GC pauses: each full collection looks at all objects, and a large cache has many.

stretto record examples/recipes/gc_pauses.py
"""

from __future__ import annotations

import time

PRODUCTS = 150_000
REQUESTS = 60

catalogue: list[dict[str, list[int]]] = []
visits: list[list[list[int]]] = []


def load() -> None:
    """Fills the cache; `gc.freeze()` at its end would spare it from collections."""
    catalogue.extend({"prices": [number, number + 1]} for number in range(PRODUCTS))


def handle(number: int) -> None:
    """Serves a request; what it keeps makes the collector look at all objects again and again."""
    visits.append([[product, number] for product in range(4000)])
    time.sleep(0.002)


def main() -> None:
    load()
    for number in range(REQUESTS):
        handle(number)


if __name__ == "__main__":
    main()
