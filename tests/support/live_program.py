"""A program that runs during a test and executes the code that the test sends to it.

    with LiveProgram("import stretto; stretto.connect()") as program:
        program.run("thread = threading.Thread(target=work); thread.start()")
        program.wait_for("thread.is_alive()")

Between two commands, the main thread of the program waits in a read of its standard input.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, Self

from tests.support.polling import wait_until

DEADLINE_S = 60.0

INSIDE = """
def _serve():
    import sys, traceback
    for line in sys.stdin:
        try:
            order = eval(line)
            try:
                code = compile(order, "<order>", "eval")
            except SyntaxError:
                code = compile(order, "<order>", "exec")
            answer = repr(eval(code, globals()))
        except BaseException:
            answer = repr("error: " + traceback.format_exc())
        print("\\x1e" + answer, flush=True)
_serve()
"""


class LiveProgram:
    """A running program to which a test sends code.

    Args:
        setup: Python source to run first.
        arguments: Options of the interpreter.
        environment: Environment variables added to those of this process.
        command: Command to run instead of `python -c SOURCE`; the source is appended.
    """

    def __init__(
        self,
        setup: str = "",
        *,
        arguments: tuple[str, ...] = ("-W", "error"),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        command = [sys.executable, "-X", "faulthandler", *arguments, "-c", setup + INSIDE]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            text=True,
            env={**os.environ, **(environment or {})},
        )

    def run(self, order: str) -> Any:
        """Run statements, or evaluate an expression, whose value must be a literal."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(repr(order) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line.startswith("\x1e"), (line, self.process.communicate())
        answer = ast.literal_eval(line[1:])
        assert not str(answer).startswith("error: "), answer
        return answer

    def wait_for(self, condition: str) -> None:
        """Wait until an expression is true in the program."""
        wait_until(lambda: self.run(f"bool({condition})"), condition)

    def finish(self) -> str:
        """Let the program end; return its standard error."""
        _, errors = self.process.communicate(timeout=DEADLINE_S)
        assert self.process.returncode == 0, errors
        return errors

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
