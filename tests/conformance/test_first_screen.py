"""As soon as the UI has opened a trace, its first screen shows names of the program's code."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.commands import Command
from tests.support.perfetto_ui import MARKS, perfetto_ui
from tests.support.recorded import alone, record

pytestmark = MARKS

PRELUDE = """
import os, time
from time import sleep as wait
UNIT = max(0.1, (time.time() - float(os.environ["STARTED"])) / 4)
"""
"""On a busy machine programs start slowly: the time in their functions grows as much."""

THREADS = """
import threading

def download():
    wait(3 * UNIT)

def parse():
    wait(2 * UNIT)

def fetch():
    download()
    parse()

def report(threads):
    for thread in threads:
        thread.join()

threads = [threading.Thread(target=fetch, name=f"fetch {what}") for what in ("books", "music")]
for thread in threads:
    thread.start()
report(threads)
"""
SERVER = """
import asyncio

def parse_order():
    wait(UNIT)

def price():
    wait(UNIT)

def render_page():
    wait(UNIT)

async def checkout(reader, writer):
    await reader.readline()
    parse_order()
    price()
    render_page()
    writer.write(b"done")
    await writer.drain()
    writer.close()

async def customer(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"order")
    writer.write_eof()
    await reader.read()
    writer.close()

async def main():
    server = await asyncio.start_server(checkout, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    await asyncio.gather(*(customer(port) for _ in range(5)))
    server.close()

asyncio.run(main())
"""
POOL = """
import multiprocessing

def resize(picture):
    wait(2 * UNIT)

def load_pictures():
    wait(3 * UNIT)
    return range(4)

def convert_all(pictures):
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(resize, pictures)

def write_index():
    wait(3 * UNIT)

def main():
    convert_all(load_pictures())
    write_index()

main()
"""
LOGS = """
import logging
log = logging.getLogger("shop")

def reserve(order):
    wait(2 * UNIT)
    log.warning("order %d is late", order)

def charge(order):
    wait(2 * UNIT)
    if order == 2:
        raise KeyError("card")

def process(order):
    reserve(order)
    charge(order)

def main():
    for order in range(3):
        process(order)

main()
"""
TESTS = """
import pytest

@pytest.fixture
def cart():
    wait(2 * UNIT)

def test_total(cart):
    wait(2 * UNIT)

def test_discount():
    wait(2 * UNIT)

def test_refund():
    wait(2 * UNIT)

def test_delivery():
    wait(2 * UNIT)
"""
PANDAS = """
import multiprocessing
import pandas
UNIT = max(UNIT, (time.time() - float(os.environ["STARTED"])) / 4)  # the import takes long

def read_sales(part):
    wait(2 * UNIT)
    return pandas.DataFrame({"shop": [1, 2, 1], "sold": [part, 2, 3]})

def summarise(part):
    return read_sales(part).groupby("shop").sum()

def list_shops():
    wait(2 * UNIT)
    return range(4)

def combine(parts):
    wait(2 * UNIT)
    return pandas.concat(parts).groupby("shop").sum()

def write_report(total):
    wait(2 * UNIT)

def main():
    shops = list_shops()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        parts = pool.map(summarise, shops)
    write_report(combine(parts))

main()
"""
PROGRAMS = {
    "threads": (THREADS, "threads.py fetch download parse report books music"),
    "server": (SERVER, "server.py checkout parse_order price render_page customer main"),
    "pool": (POOL, "pool.py main load_pictures convert_all write_index resize"),
    "logs": (LOGS, "logs.py main process reserve charge"),
    "sales": (PANDAS, "sales.py main list_shops combine write_report summarise read_sales"),
}


@pytest.fixture
def first_screen() -> Iterator[Callable[[Path], list[str]]]:
    with perfetto_ui() as ui:

        def show(trace: Path) -> list[str]:
            with Command("view", "--offline", "--no-browser", "--port", "0", str(trace)) as view:
                texts = ui.first_screen(view.line_with("#!/?url="))
                ui.screenshot(f"ui-first-{trace.stem}")
                assert view.interrupt() == 0
            return texts

        yield show


def shown(names: str, texts: list[str]) -> set[str]:
    """Return the names that the texts show, also names cut after three or more letters."""

    def matches(name: str, text: str) -> bool:
        start = text.removesuffix("…")
        return name in text.split() or (
            len(start) >= 3 and text != start and name.startswith(start)
        )

    return {name for name in names.split() if any(matches(name, text) for text in texts)}


@pytest.mark.parametrize("program", PROGRAMS)
def test_first_screen_shows_five_names_of_the_program(
    program: str, tmp_path: Path, first_screen: Callable[[Path], list[str]]
) -> None:
    if program == "sales":
        pytest.importorskip("pandas", reason="installed for 3.12")
    text, names = PROGRAMS[program]
    script, trace = tmp_path / f"{program}.py", tmp_path / f"{program}.pftrace"
    script.write_text(PRELUDE + text)
    run = record(trace, str(script), STARTED=str(time.time()), PYTHONWARNINGS="ignore")
    assert run.path == trace
    texts = first_screen(trace)
    assert len(shown(names, texts)) >= 5, sorted(texts)


def test_first_screen_of_a_test_run_shows_its_tests(
    tmp_path: Path, first_screen: Callable[[Path], list[str]]
) -> None:
    script, trace = tmp_path / "test_shop.py", tmp_path / "tests.pftrace"
    script.write_text(PRELUDE + TESTS)
    command = [f"--stretto={trace}", f"--rootdir={tmp_path}", "-q", "-p", "no:cacheprovider"]
    run = alone(sys.executable, "-m", "pytest", *command, str(script), STARTED=str(time.time()))
    assert run.status == 0, run.stdout
    texts = first_screen(trace)
    names = "test_total test_discount test_refund test_delivery cart"
    found = shown(names, [text.rpartition("::")[2] for text in texts])
    assert len(found) == 5, sorted(texts)
