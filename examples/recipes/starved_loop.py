"""A starved event loop: one request computes for long, and all others wait for it.

stretto record --waits examples/recipes/starved_loop.py
"""

from __future__ import annotations

import asyncio
import hashlib
import time

CUSTOMERS = 4
ORDERS = 3


def sign(order: str) -> str:
    """Computes a slow digest: on the thread of the event loop."""
    begin, digest = time.perf_counter(), order.encode()
    while time.perf_counter() - begin < 0.25:
        digest = hashlib.sha256(digest).digest()
    return digest.hex()


async def checkout(order: str) -> None:
    await asyncio.sleep(0.02)
    sign(order)  # `await asyncio.to_thread(sign, order)` would not block the loop


async def browse() -> None:
    """Serves a page: it needs the loop for a moment, every 20 ms."""
    for _ in range(60):
        await asyncio.sleep(0.02)


async def main() -> None:
    customers = [asyncio.create_task(browse()) for _ in range(CUSTOMERS)]
    for number in range(ORDERS):
        await asyncio.sleep(0.15)
        await checkout(f"order {number}")
    await asyncio.gather(*customers)


if __name__ == "__main__":
    asyncio.run(main())
