"""A small program for a first trace. It takes about three seconds.

    stretto record examples/demo.py          then open trace.pftrace at https://ui.perfetto.dev

`stretto record` records functions, threads, tasks, the child process, garbage collections and log
records without changes to the program. The named slices, the counter and the flows are
instrumentation in the program; without a recording they cost almost nothing.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import subprocess
import sys
import threading
import time

import stretto

render = stretto.Category("render", description="frames and what they wait for")
log = logging.getLogger("demo")

FRAMES = 60
FRAME_S = 1 / 60


def busy(seconds: float) -> int:
    """Keeps the processor busy for this time."""
    steps, end = 0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        steps += sum(range(50))
    return steps


# Two threads: a loader passes pictures to the renderer. A flow is an arrow between their slices.


def load_pictures(pictures: queue.Queue[stretto.Flow | None]) -> None:
    for number in range(FRAMES // 10):
        flow = stretto.Flow()
        with render.slice("load picture", number=number, flow=flow):
            busy(0.02)
            time.sleep(0.03)
        pictures.put(flow)
    pictures.put(None)


@render.traced
def draw(shapes: int) -> None:
    for _ in range(shapes):
        busy(0.0005)


def render_frames(pictures: queue.Queue[stretto.Flow | None]) -> None:
    for frame in range(FRAMES):
        with render.slice("frame", number=frame):
            draw(shapes=1 + frame % 8)
            if not pictures.empty() and (flow := pictures.get()):
                with render.slice("upload picture", terminating_flow=flow):
                    busy(0.002)
        render.counter("pictures waiting", pictures.qsize())
        render.instant("vsync", frame=frame)
        time.sleep(FRAME_S)


# asyncio tasks: each task has a row of its own in the trace, though they share a thread.


async def fetch(name: str, seconds: float) -> str:
    with stretto.slice("request", name=name):
        await asyncio.sleep(seconds)
        busy(0.005)
    return name


async def fetch_all() -> None:
    jobs = [fetch(name, 0.1 + n / 20) for n, name in enumerate(("news", "mail", "weather"))]
    async with asyncio.timeout(5):
        log.info("fetched %s", ", ".join(await asyncio.gather(*jobs)))


# A child process: it appears below this process in the same trace.

CHILD = """
import stretto, time
with stretto.slice("in the child"):
    words = sorted(str(n) for n in range(200_000))
    time.sleep(0.2)
"""


def run_child() -> None:
    with stretto.slice("wait for the child"):
        subprocess.run([sys.executable, "-c", CHILD], check=True)


def make_garbage() -> None:
    for _ in range(20_000):
        ring: list[object] = []
        ring.append(ring)


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    pictures: queue.Queue[stretto.Flow | None] = queue.Queue()
    threads = [
        threading.Thread(target=load_pictures, args=(pictures,), name="loader"),
        threading.Thread(target=render_frames, args=(pictures,), name="renderer"),
    ]
    for thread in threads:
        thread.start()
    asyncio.run(fetch_all())
    run_child()
    make_garbage()
    for thread in threads:
        thread.join()
    log.info("rendered %d frames", FRAMES)


if __name__ == "__main__":
    main()
