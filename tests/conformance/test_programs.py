"""`stretto record` doesn't change what third-party programs do, and their traces are complete."""

from __future__ import annotations

import importlib.util
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from tests.support.recorded import alone, check_trace, names, pids, record, record_command

pytestmark = [pytest.mark.thorough, pytest.mark.xdist_group("programs")]

STANDARD_TESTS = (
    "test.test_textwrap",
    "test.test_heapq",
    "test.test_contextlib",
    "test.test_queue",
)
PORT_WAIT_S = 30
REQUESTS = 60


def without_times(text):
    return re.sub(r"[0-9.]+ ?s\b", "T s", text)


def test_unittest_of_the_standard_library_is_recorded(oracle, tmp_path):
    if importlib.util.find_spec("test.test_textwrap") is None:
        pytest.skip("this Python has no test package")
    arguments = ("-m", "unittest", *STANDARD_TESTS)
    plain = alone(sys.executable, *arguments)
    run = record(tmp_path / "trace", "--buffer", "32mb", *arguments)
    assert run.status == plain.status == 0
    assert without_times(plain.stderr) in without_times(run.stderr)
    loaded = check_trace(oracle, run.trace)
    assert "TextWrapper.wrap" in names(loaded) or "wrap" in str(names(loaded))


def test_pytest_of_a_public_package_is_recorded(oracle, tmp_path):
    if importlib.util.find_spec("toolz") is None:
        pytest.skip("the package toolz, whose tests this runs, is not installed")
    arguments = ("-q", "-p", "no:cacheprovider", "--pyargs", "toolz.tests.test_itertoolz")
    plain = alone(sys.executable, "-m", "pytest", *arguments, cwd=tmp_path)
    run = record(tmp_path / "trace", "--full", "-m", "pytest", *arguments, cwd=tmp_path)
    assert run.status == plain.status == 0
    assert without_times(plain.stdout) == without_times(run.stdout)
    assert "toolz.tests.test_itertoolz.test_groupby" in names(check_trace(oracle, run.trace))


APPLICATION = """
def app(environ, start_response):
    body = handle(environ["PATH_INFO"])
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]

def handle(path):
    return f"you asked for {path}".encode()
"""

ASYNC_APPLICATION = """
import asyncio

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
    await handle_request(send)

async def handle_request(send):
    await asyncio.sleep(0)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"hello"})
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def send_request(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/x", timeout=10) as answer:
        return answer.read()


def wait_until_serving(port, server):
    deadline = time.monotonic() + PORT_WAIT_S
    while time.monotonic() < deadline:
        assert server.poll() is None, server.stderr.read()
        try:
            return send_request(port)
        except OSError:
            time.sleep(0.05)  # sleep: polls until the server listens
    raise AssertionError("the server does not answer")


def serve(path, port, *command, cwd):
    """Record a server, send it requests, end it with SIGTERM; return its status and stderr."""
    server = subprocess.Popen(
        record_command(path, "--ring", *command), cwd=cwd, stderr=subprocess.PIPE, text=True
    )
    try:
        wait_until_serving(port, server)
        for _ in range(REQUESTS):
            send_request(port)
        server.send_signal(signal.SIGTERM)
        _, stderr = server.communicate(timeout=60)
    finally:
        server.kill()
    return server.returncode, stderr


def test_gunicorn_with_max_requests_is_recorded(oracle, tmp_path):
    (tmp_path / "application.py").write_text(APPLICATION)
    port = free_port()
    options = ("-w", "2", "--max-requests", "20", "--threads", "1", "-b", f"127.0.0.1:{port}")
    status, stderr = serve(
        tmp_path / "trace", port, "-m", "gunicorn", *options, "application:app", cwd=tmp_path
    )
    assert status == 0, stderr
    loaded = check_trace(oracle, (tmp_path / "trace").read_bytes(), complete=False)
    handled = "select count(*) from slice where name = 'application.handle'"
    assert loaded.query(handled) == [(REQUESTS + 1,)]
    assert len(pids(loaded)) >= 1 + 2 + 1, "master, two workers, and those that replaced them"


def test_uvicorn_with_workers_is_recorded(oracle, tmp_path):
    (tmp_path / "application.py").write_text(ASYNC_APPLICATION)
    port = free_port()
    options = ("application:app", "--workers", "2", "--port", str(port), "--log-level", "warning")
    status, stderr = serve(tmp_path / "trace", port, "-m", "uvicorn", *options, cwd=tmp_path)
    assert status in (0, -signal.SIGTERM, 128 + signal.SIGTERM), stderr
    loaded = check_trace(oracle, (tmp_path / "trace").read_bytes(), complete=False)
    handled = "select count(*) from slice where name = 'application.handle_request'"
    assert loaded.query(handled)[0][0] >= REQUESTS
    assert len(pids(loaded)) >= 3


POOLS = """
import multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor

def square(number):
    return number * number

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        print(sum(pool.map(square, range(50))))
    with context.Pool(2) as pool:
        print(sum(pool.map(square, range(50))))
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_process_pools_are_recorded(oracle, tmp_path, method):
    script = tmp_path / "pools.py"
    script.write_text(POOLS)
    plain = alone(sys.executable, str(script), method)
    run = record(tmp_path / "trace", "--ring", str(script), method)
    assert (run.status, run.stdout) == (plain.status, plain.stdout) == (0, "40425\n40425\n")
    loaded = check_trace(oracle, run.trace, complete=False)
    assert loaded.query("select count(*) from slice where name = 'square'") == [(100,)]
    assert len(pids(loaded)) >= 2


WORK = """
def work(n):
    return sum(helper(i) for i in range(n))

def helper(i):
    return i * 2

"""
OTHER_TOOLS = {
    "cProfile": WORK
    + """
import cProfile, io, pstats
profile = cProfile.Profile()
profile.enable()
work(100)
profile.disable()
out = io.StringIO()
pstats.Stats(profile, stream=out).print_stats("helper")
print("100" in out.getvalue())
work(3)
""",
    "coverage": WORK
    + """
import coverage
cover = coverage.Coverage(data_file=None, config_file=False)
cover.start()
work(100)
cover.stop()
print(any(name.endswith("program.py") for name in cover.get_data().measured_files()))
work(3)
""",
    "pdb": WORK
    + """
import io, pdb
commands = io.StringIO("next\\nnext\\ncontinue\\n")
debugger = pdb.Pdb(stdin=commands, stdout=io.StringIO(), nosigint=True)
debugger.set_trace()
work(3)
print("done")
""",
}


@pytest.mark.parametrize("tool", sorted(OTHER_TOOLS))
def test_program_with_its_own_profiler_behaves_as_without_a_recorder(oracle, tmp_path, tool):
    if tool == "coverage" and importlib.util.find_spec("coverage") is None:
        pytest.skip("the package coverage is not installed")
    script = tmp_path / "program.py"
    script.write_text(OTHER_TOOLS[tool])
    plain = alone(sys.executable, str(script))
    run = record(tmp_path / "trace", "--ring", str(script))
    assert (run.status, run.stdout) == (plain.status, plain.stdout)
    assert run.stdout in ("True\n", "done\n")
    # Python 3.11 has one profile hook. If the program replaces it, open slices get no END.
    replaced = "profiler replaced by the program" in run.stderr
    assert replaced == (sys.version_info < (3, 12) and tool == "cProfile")
    check_trace(oracle, run.trace, complete=not replaced)


SERVER = """
import asyncio

async def serve_one(reader, writer):
    while line := await reader.readline():
        writer.write(line.upper())
        await writer.drain()
    writer.close()

async def client(port, number):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for i in range(20):
        writer.write(f"hello {number} {i}\\n".encode())
        assert await reader.readline() == f"HELLO {number} {i}\\n".encode()
    writer.close()
    await writer.wait_closed()

async def main():
    server = await asyncio.start_server(serve_one, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    await asyncio.gather(*(client(port, n) for n in range(30)))
    server.close()

asyncio.run(main())
"""


def test_asyncio_server_under_load_is_recorded(oracle, tmp_path):
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    run = record(tmp_path / "trace", "--ring", str(script))
    assert run.status == 0, run.stderr
    loaded = check_trace(oracle, run.trace)
    assert {"serve_one", "client", "main"} <= names(loaded)


def test_threads_of_a_recorded_program_are_named(oracle, tmp_path):
    script = tmp_path / "program.py"
    script.write_text(
        "import threading, time\n"
        "def work(): time.sleep(0.01)\n"  # sleep: long enough to be shown
        "thread = threading.Thread(target=work, name='worker seven')\n"
        "thread.start()\n"
        "thread.join()\n"
    )
    run = record(tmp_path / "trace", str(script))
    assert run.status == 0, run.stderr
    loaded = check_trace(oracle, run.trace)
    assert ("worker seven",) in loaded.query("select name from thread")
