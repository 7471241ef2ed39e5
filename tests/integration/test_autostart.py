"""The autostart .pth file in virtual environments, and the interpreters that load it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import stretto
from tests.support.service_process import ServiceProcess

REPORT = """
import sys
module = sys.modules.get("stretto.client.connection")
print(len(module._active) if module else "no")
"""
STRETTO = Path(stretto.__file__).parent.parent


class Environment:
    """A virtual environment; `has_stretto` adds or removes Stretto."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        command = [sys.executable, "-m", "venv", "--without-pip", str(folder)]
        subprocess.run(command, check=True)
        (self.packages,) = (folder / "lib").glob("python*/site-packages")
        self.has_stretto(True)

    def has_stretto(self, yes: bool) -> None:
        (self.packages / "path.pth").write_text(f"{STRETTO}\n" if yes else "")

    def python(self, *arguments: str, variable: str | None = "1") -> str:
        """Run Python with these arguments; return its output, or fail on an error."""
        names = ("PYTHONPATH", "STRETTO_CONNECT")
        environment = {k: v for k, v in os.environ.items() if k not in names}
        if variable is not None:
            environment["STRETTO_CONNECT"] = variable
        command = [str(self.folder / "bin" / "python"), *arguments]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=100, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), command
        return done.stdout.strip()

    def install(self) -> None:
        assert "stretto-autostart.pth" in self.python("-m", "stretto", "autostart", "--install")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    made = Environment(tmp_path_factory.mktemp("venv"))
    made.install()
    return made


@pytest.fixture
def environment(made: Environment) -> Iterator[Environment]:
    yield made
    made.has_stretto(True)


@pytest.mark.parametrize("variable", [None, "", "0"])
def test_stretto_is_not_imported_if_the_environment_variable_is_unset(
    environment: Environment, variable: str | None
) -> None:
    modules = "import sys; print([name for name in sys.modules if name.startswith('stretto')])"
    assert environment.python("-c", modules, variable=variable) == "[]"
    assert environment.python("-c", REPORT, variable=variable) == "no"


@pytest.mark.parametrize("options", [(), ("-E",), ("-I",), ("-s",), ("-W", "error")])
def test_program_connects_if_the_environment_variable_is_set(
    environment: Environment, options: tuple[str, ...]
) -> None:
    assert environment.python(*options, "-c", REPORT) == "1"


def test_program_does_not_connect_if_python_runs_without_site(
    environment: Environment,
) -> None:
    assert environment.python("-S", "-c", REPORT) == "no"
    assert environment.python("-I", "-S", "-c", REPORT) == "no"


def test_program_connects_once_if_the_pth_file_runs_twice(environment: Environment) -> None:
    again = f"import site; site.addsitedir({str(environment.packages)!r})\n" + REPORT
    assert environment.python("-c", again) == "1"


def test_program_runs_without_a_message_if_stretto_cannot_be_imported(
    environment: Environment, tmp_path: Path
) -> None:
    environment.has_stretto(False)
    assert environment.python("-c", REPORT) == "no"
    broken = tmp_path / "stretto"
    broken.mkdir()
    (broken / "__init__.py").write_text("raise RuntimeError('broken')")
    (environment.packages / "path.pth").write_text(f"{tmp_path}\n")
    assert environment.python("-c", "print('runs')") == "runs"


def test_a_stretto_py_in_the_current_folder_is_not_imported(
    environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stretto.py").write_text("print('taken')")
    monkeypatch.chdir(tmp_path)
    assert environment.python("-c", "print('runs')") == "runs"


def test_commands_of_stretto_do_not_connect_to_the_service(environment: Environment) -> None:
    threads = "import os; print(len(os.listdir('/proc/self/task')))"
    code = f"from stretto.cli.main import main; main(['--version']); {threads}"
    assert environment.python("-c", code).splitlines()[-1] == "1"


def test_module_run_with_the_environment_variable_connects(
    environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = str(tmp_path / "producer.sock")
    monkeypatch.setenv("PERFETTO_PRODUCER_SOCK_NAME", address)
    (tmp_path / "program.py").write_text("import sys; sys.stdin.read()")
    monkeypatch.chdir(tmp_path)
    command = [str(environment.folder / "bin" / "python"), "-m", "program"]
    unchanged = {**os.environ, "STRETTO_CONNECT": "1"}
    unchanged.pop("PYTHONPATH", None)
    with ServiceProcess(address) as service:
        program = subprocess.Popen(command, env=unchanged, stdin=subprocess.PIPE)
        try:
            (producer,) = service.wait_for_producers(1)
            assert (producer["pid"], producer["name"]) == (program.pid, "program")
        finally:
            program.communicate()
    assert program.returncode == 0
