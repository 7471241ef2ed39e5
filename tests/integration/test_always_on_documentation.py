"""The commands and the config of docs/always_on.md work as described."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

from stretto.cli.autostart import LINE
from stretto.testing.decoded_packets import decode_packets
from tests.support.polling import wait_until
from tests.support.sources import ROOT
from tests.support.traced import Daemon, Process, closing_all

TEXT = (ROOT / "docs" / "always_on.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
(PROGRAM,) = (text for language, text in BLOCKS if language == "python")
(CONFIG,) = (text for _, text in BLOCKS if text.startswith("buffers"))
COMMANDS = [line for language, text in BLOCKS if not language for line in text.splitlines()]


def command(start: str) -> list[str]:
    """Return the documented command that starts with this text, without its explanation."""
    (line,) = (line for line in COMMANDS if line.startswith(start))
    verb, *words = shlex.split(line.split("   ")[0])
    assert verb == "stretto"
    return [sys.executable, "-m", "stretto", *words]


def record(daemon: Daemon, folder: Path) -> set[str]:
    """Run the documented command until Ctrl-C; return the names of the recorded events."""
    query = command("stretto trace --query")
    recorder = Process(
        *command("stretto trace -c"), cwd=folder, env=daemon.environment, stderr=subprocess.PIPE
    )
    try:
        wait_until(
            lambda: b"(started: 1)" in subprocess.check_output(query, env=daemon.environment),
            "the session",
        )
        recorder.signal(signal.SIGINT)
        assert recorder.wait() == 0
    finally:
        recorder.close()
    packets = decode_packets((folder / "functions.pftrace").read_bytes())
    interned = [packet.interned_data for packet in packets if packet.interned_data is not None]
    return {each.name or "" for data in interned for each in data.event_names}


def test_documented_commands_record_a_running_program(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(PROGRAM)
    (tmp_path / "functions.pbtxt").write_text(CONFIG)
    with closing_all() as opened:
        daemon = Daemon(tmp_path)
        opened.append(daemon)
        program = Process(sys.executable, "app.py", cwd=tmp_path, env=daemon.environment)
        opened.append(program)
        query = command("stretto trace --query")
        wait_until(
            lambda: b" shop" in subprocess.check_output(query, env=daemon.environment),
            "the program's category",
        )
        wait_until(lambda: {"request", "price"} <= record(daemon, tmp_path), "its events")
        assert program.popen.poll() is None


def test_documented_command_connects_an_unmodified_program(tmp_path: Path) -> None:
    """The .pth file that `stretto autostart --install` writes connects the program."""
    (line,) = (line for line in COMMANDS if line.startswith("STRETTO_CONNECT"))
    variable, value = line.split()[0].split("=")
    site = "import site, sys; site.addpackage(sys.argv[1], 'stretto-autostart.pth', set()); "
    (tmp_path / "stretto-autostart.pth").write_text(LINE)
    with closing_all() as opened:
        daemon = Daemon(tmp_path)
        opened.append(daemon)
        program = Process(
            *(sys.executable, "-c", site + "input()", str(tmp_path)),
            env={**daemon.environment, variable: value},
        )
        opened.append(program)
        consumer = daemon.consumer()
        opened.append(consumer)
        wait_until(
            lambda: program.pid in {each.pid for each in consumer.state().producers},
            "the program's connection",
        )


def test_config_in_the_document_equals_the_config_file_of_the_example() -> None:
    example = (ROOT / "examples" / "always_on" / "functions.pbtxt").read_text()
    assert [line for line in example.splitlines() if not line.startswith("#")] == (
        CONFIG.splitlines()
    )


def test_stretto_verbs_in_the_document_exist() -> None:
    verbs = {line.split()[1] for line in COMMANDS if line.startswith("stretto ")}
    for verb in verbs:
        subprocess.run([sys.executable, "-m", "stretto", verb, "--help"], check=True, stdout=-3)
