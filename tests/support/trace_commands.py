"""Runs `stretto trace` and Perfetto's `perfetto` in the same way, and compares the results."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.support import newer_debian
from tests.support.polling import wait_until
from tests.support.traced import TIMEOUT_S

SOURCE = 'buffers { size_kb: 1024 } data_sources { config { name: "track_event" } }'
BRIEF = f"duration_ms: 50 {SOURCE}"
FILES: dict[str, str | bytes] = {
    "brief": BRIEF,
    "binary": bytes.fromhex("1832 0a03088008"),
    "broken_binary": b"\xff\xff\xff\xff",
    "empty": "",
    "unknown_field": f"nonsense: 4 {BRIEF}",
    "broken_syntax": "duration_ms: {",
    "no_buffer": "duration_ms: 50",
    "too_long": f"duration_ms: 4000000000 {SOURCE}",
    "into_file": f"{BRIEF} write_into_file: true file_write_period_ms: 600000",
    "endless_into_file": f"{SOURCE} write_into_file: true file_write_period_ms: 600000",
    "fires": 'activate_triggers: "x"',
    "fires_and_writes": 'activate_triggers: "x" write_into_file: true',
    "to_path": f'{BRIEF} write_into_file: true output_path: "FOLDER/path"',
    "to_taken_path": f'{BRIEF} write_into_file: true output_path: "FOLDER/old"',
    "to_path_by_nobody": f'{BRIEF} output_path: "FOLDER/path"',
    "half_a_delay": f"{BRIEF} cmd_trace_start_delay {{ min_delay_ms: 5 }} ",
    "delay": f"{BRIEF} cmd_trace_start_delay {{ min_delay_ms: 1 max_delay_ms: 2 }} ",
    "incident": f'{BRIEF} incident_report_config {{ destination_package: "x" }} ',
    "no_incident": f"{BRIEF} incident_report_config {{ skip_incidentd: true }} ",
    "report": f'{BRIEF} android_report_config {{ reporter_service_package: "x" }} ',
    "no_report": f"{BRIEF} android_report_config {{ skip_report: true }} ",
    "logging": f"{BRIEF} statsd_logging: STATSD_LOGGING_ENABLED",
    "old": "old",
}


FULL = "full"
"""A device like /dev/full in the folder of a command, for root alone: Perfetto's command, whose
writing failed, may delete its output, and tests must not delete the machine's own device."""


class Effects(NamedTuple):
    """Exit status, standard output and files of one run of a command."""

    status: int
    stdout: str
    files: dict[str, str]


class TraceCommand:
    """The command `stretto trace` or `perfetto`, with its own working folder.

    Args:
        program: `stretto` or `perfetto`.
        folder: Working folder, which is created with FILES in it.
        environment: Environment variables, among them the addresses of the service.
    """

    def __init__(self, program: str, folder: Path, environment: dict[str, str]) -> None:
        folder.mkdir()
        self.folder = folder
        self.environment = {**environment, "TMPDIR": str(folder)}
        sockets = Path(environment["PERFETTO_CONSUMER_SOCK_NAME"]).parent
        self._words = (
            newer_debian.command(program, folder, sockets)
            if program == "perfetto"
            else [sys.executable, "-m", program, "trace"]
        )
        for name, text in FILES.items():
            data = text if isinstance(text, bytes) else text.encode()
            (folder / name).write_bytes(data.replace(b"FOLDER", os.fsencode(folder)))
        if os.geteuid() == 0:
            os.mknod(folder / FULL, stat.S_IFCHR | 0o666, os.stat("/dev/full").st_rdev)

    def popen(self, *words: str, **options: int) -> subprocess.Popen[bytes]:
        """Start the command with these arguments; return its process."""
        return subprocess.Popen(
            [*self._words, *words], cwd=self.folder, env=self.environment, **options
        )

    def run(self, *words: str, stdin: str | bytes = b"") -> Effects:
        """Run the command, and wait until it and its background processes have ended."""
        data = stdin if isinstance(stdin, bytes) else stdin.encode()
        pipe = subprocess.PIPE
        with self.popen(*words, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as process:
            stdout, _ = process.communicate(data, TIMEOUT_S)
        pid = Path(f"/proc/{stdout.decode().strip()}") if stdout.strip().isdigit() else None
        if pid is not None:
            wait_until(lambda: not pid.exists(), "the end of the background process")
        return Effects(process.returncode, _kind(stdout), self._files())

    def _files(self) -> dict[str, str]:
        """Return new and changed files, and whether each has content."""
        paths = [path for path in self.folder.iterdir() if not path.is_char_device()]
        found = {path.name: path.read_bytes() for path in paths}
        found = {name: data for name, data in found.items() if not _is_given(name, data)}
        if not (self.folder / "old").exists():
            found["old"] = b""
        return {name: "some" if data else "nothing" for name, data in found.items()}


def end(process: subprocess.Popen[bytes]) -> None:
    """Send SIGTERM to the command, which is the last descendant of the process."""
    pid = str(process.pid)
    while children := Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        (pid,) = children
    os.kill(int(pid), signal.SIGTERM)


def _is_given(name: str, data: bytes) -> bool:
    return name in FILES and (name != "old" or data == b"old")


def _kind(output: bytes) -> str:
    if output.strip().isdigit():
        return "a pid"
    return repr(output) if len(output) < 3 else "some"
