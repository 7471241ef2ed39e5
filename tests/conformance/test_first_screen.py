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
WEBSHOP = """
import asyncio, hashlib, logging
from aiohttp import ClientSession, web

logging.basicConfig(level=logging.INFO)
log = logging.getLogger("webshop")

class Catalogue:
    def __init__(self):
        self.items = [{"id": number, "price": number * 7 % 100} for number in range(400)]

    def search(self, text):
        return [item for item in self.items if digest(f"{text}{item['id']}") < "2"]

def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()

def render(items):
    return {"items": sorted(items, key=lambda item: item["price"]), "number": len(items)}

async def query_stock(item):
    await asyncio.sleep(0.01)  # sleep: the database
    return item["id"] % 3

async def search_view(request):
    items = request.app["catalogue"].search(request.query["text"])
    for item in items[:3]:
        item["stock"] = await query_stock(item)
    log.info("search for %s: %d items", request.query["text"], len(items))
    return web.json_response(render(items))

async def order_view(request):
    order = await request.json()
    log.info("order of %s", order)
    if order["item"] % 10 == 0:
        log.warning("item %d is sold out", order["item"])
        raise web.HTTPConflict(text="sold out")
    return web.json_response({})

def make_app():
    app = web.Application()
    app["catalogue"] = Catalogue()
    app.router.add_get("/search", search_view)
    app.router.add_post("/order", order_view)
    return app

async def shopper(session, address, number):
    async with session.get(f"{address}/search", params={"text": f"book{number}"}) as answer:
        await answer.json()
    async with session.post(f"{address}/order", json={"item": number}) as answer:
        return answer.status

async def load(address):
    async with ClientSession() as session:
        return await asyncio.gather(*(shopper(session, address, n) for n in range(40)))

async def main():
    runner = web.AppRunner(make_app())
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    for _ in range(3):
        await load(f"http://127.0.0.1:{runner.addresses[0][1]}")
    await runner.cleanup()

asyncio.run(main())
"""
MONTHS = """
import logging, multiprocessing
import numpy, pandas

logging.basicConfig(level=logging.INFO)
log = logging.getLogger("months")

def make_orders(month):
    random = numpy.random.default_rng(month)
    customers = random.integers(0, 5000, 200_000)
    return pandas.DataFrame({"customer": customers, "amount": random.gamma(2, 20, 200_000)})

def make_customers():
    regions = numpy.random.default_rng(7).choice(list("NESW"), 5000)
    return pandas.DataFrame({"customer": range(5000), "region": regions})

def clean(orders):
    return orders[orders.amount > 1].drop_duplicates()

def by_region(orders, customers):
    return orders.merge(customers, on="customer").groupby("region").amount.agg(["sum", "count"])

def process_month(month):
    result = by_region(clean(make_orders(month)), make_customers())
    log.info("month %d: %d rows", month, len(result))
    return result

def combine(parts):
    return pandas.concat(parts).groupby(level=0).sum()

def main():
    with multiprocessing.get_context("fork").Pool(4) as pool:
        parts = pool.map(process_month, range(12))
    combine(parts)

main()
"""
PROGRAMS = {
    "threads": (THREADS, "threads.py fetch download parse report books music"),
    "server": (SERVER, "server.py checkout parse_order price render_page customer main"),
    "pool": (POOL, "pool.py main load_pictures convert_all write_index resize"),
    "logs": (LOGS, "logs.py main process reserve charge"),
    "webshop": (
        WEBSHOP,
        "search_view order_view shopper Catalogue.search render main load make_app query_stock",
    ),
    "months": (MONTHS, "main process_month clean by_region make_orders make_customers combine"),
    "sales": (PANDAS, "sales.py main list_shops combine write_report summarise read_sales"),
}
NEEDED = {"webshop": ["aiohttp"], "sales": ["pandas"], "months": ["pandas"]}


@pytest.fixture
def first_screen() -> Iterator[Callable[[Path], list[str]]]:
    with perfetto_ui() as ui:

        def show(trace: Path) -> list[str]:
            with Command("view", "--offline", "--no-browser", "--port", "0", str(trace)) as view:
                texts = ui.first_screen(view.line_with("#!/?url="))
                ui.screenshot(f"ui-first-{trace.stem}")
                ui.follow_link_of_table()
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
    for module in NEEDED.get(program, ()):
        pytest.importorskip(module, reason="installed for 3.12")
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
