"""The programs of `bench/programs.py`: real libraries at work.

    python _programs.py NAME COUNT

Each program has three phases: `load` imports and prepares, `work` repeats the same step COUNT
times, and `finish` waits for 50 ms. If a trace has the whole run, its last function is `finish`.
"""

from __future__ import annotations

import importlib.util
import io
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    Step = Callable[[], object]


def _pyperformance(name: str) -> Any:
    """Import a benchmark of pyperformance."""
    spec = importlib.util.find_spec("pyperformance")
    if spec is None or spec.origin is None:
        raise SystemExit("pyperformance is missing: pip install stretto[bench]")
    folder = Path(spec.origin).parent / "data-files" / "benchmarks" / f"bm_{name}"
    sys.path.insert(0, str(folder))
    import run_benchmark  # type: ignore[import-not-found]

    return run_benchmark


def richards() -> Step:
    module = _pyperformance("richards")
    return lambda: module.Richards().run(1)


def deltablue() -> Step:
    module = _pyperformance("deltablue")
    return lambda: module.delta_blue(300)


def django_template() -> Step:
    import django
    from django.conf import settings
    from django.template import Context, Template

    settings.configure(TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}])
    django.setup()
    template = Template(
        "<table>{% for row in table %}<tr>{% for col in row %}<td>{{ col|escape }}</td>"
        "{% endfor %}</tr>{% endfor %}</table>"
    )
    context = Context({"table": [range(50)] * 20})
    return lambda: template.render(context)


def sympy_expand() -> Step:
    from sympy import expand, symbols
    from sympy.core.cache import clear_cache

    x, y, z, w = symbols("x y z w")

    def step() -> None:
        clear_cache()
        expand((1 + x + y + z + w) ** 8)

    return step


def html5lib_parse() -> Step:
    import html5lib

    text = "<p class=a>one<b>two</b><ul><li>three<li>four</ul>" * 60
    return lambda: html5lib.parse(text)


def sqlalchemy_orm() -> Step:
    from sqlalchemy import Column, Integer, String, create_engine
    from sqlalchemy.orm import Session, declarative_base

    base: Any = declarative_base()

    class Item(base):  # type: ignore[misc]
        __tablename__ = "items"
        id = Column(Integer, primary_key=True)
        name = Column(String)

    engine = create_engine("sqlite://")
    base.metadata.create_all(engine)

    def step() -> None:
        with Session(engine) as session:
            session.add_all(Item(name=str(i)) for i in range(50))
            session.flush()
            assert len(session.query(Item).filter(Item.name != "").all()) == 50
            session.rollback()

    return step


def tornado_http() -> Step:
    import asyncio

    from tornado.httpclient import AsyncHTTPClient
    from tornado.httpserver import HTTPServer
    from tornado.testing import bind_unused_port
    from tornado.web import Application, RequestHandler

    class Hello(RequestHandler):
        def get(self) -> None:
            self.write("hello" * 100)

    async def requests() -> None:
        socket, port = bind_unused_port()
        server = HTTPServer(Application([("/", Hello)], log_function=lambda _: None))
        server.add_socket(socket)
        client = AsyncHTTPClient()
        for _ in range(10):
            await asyncio.gather(*(client.fetch(f"http://127.0.0.1:{port}/") for _ in range(10)))
        server.stop()
        client.close()

    return lambda: asyncio.run(requests())


def json_dumps() -> Step:
    import json

    data = {str(i): [i, str(i), {"a": i / 3, "b": None}] for i in range(500)}

    def step() -> None:
        json.loads(json.dumps(data, indent=1))

    return step


def asyncio_tree() -> Step:
    import asyncio

    async def node(level: int) -> None:
        if level:
            await asyncio.gather(*(node(level - 1) for _ in range(5)))
        else:
            await asyncio.sleep(0)

    return lambda: asyncio.run(node(4))


def pylint_package() -> Step:
    from pylint.lint import Run
    from pylint.reporters.text import TextReporter

    spec = importlib.util.find_spec("json.decoder")
    target = str(spec and spec.origin)

    def step() -> None:
        Run([target, "--errors-only"], TextReporter(io.StringIO()), exit=False)

    return step


def pytest_suite() -> Step:
    import contextlib

    import pytest

    suite = ["toolz.tests.test_itertoolz", "toolz.tests.test_dicttoolz"]
    # Without the settings and hooks of the folder in which the benchmark runs.
    options = ["-q", "-c", os.devnull, "--noconftest", "-p", "no:cacheprovider", "-W", "ignore"]

    def step() -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            status = pytest.main([*options, "--pyargs", *suite])
        if status:
            raise SystemExit(f"the tests failed: {status!r}")

    return step


def docutils_html() -> Step:
    from docutils.core import publish_string

    text = "Title\n=====\n\n" + "Some *emphasis* and ``code``.\n\n* one\n* two\n\n" * 40
    return lambda: publish_string(text, writer_name="html")


PROGRAMS: dict[str, Callable[[], Step]] = {
    program.__name__: program
    for program in (
        richards,
        deltablue,
        django_template,
        sympy_expand,
        html5lib_parse,
        sqlalchemy_orm,
        tornado_http,
        json_dumps,
        asyncio_tree,
        pylint_package,
        pytest_suite,
        docutils_html,
    )
}


def load(name: str) -> Step:
    """Import and prepare a program; return the function that runs one step of it."""
    return PROGRAMS[name]()


def work(step: Step, count: int) -> None:
    """Call the program's step `count` times."""
    for _ in range(count):
        step()


def finish() -> None:
    """Wait for 50 ms, so that the trace shows the end of the program."""
    time.sleep(0.05)


def main(name: str, count: int) -> None:
    """Run the three phases of a program."""
    begin = time.perf_counter()
    step = load(name)
    loaded = time.perf_counter()
    work(step, count)
    worked = time.perf_counter()
    finish()
    # The resident size that the kernel reports at the end of a process may be that of its parent.
    status = Path("/proc/self/status").read_text().split()
    peak_kb = status[status.index("VmHWM:") + 1]
    print(f"phases {loaded - begin:.3f} {worked - loaded:.3f} {peak_kb}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
