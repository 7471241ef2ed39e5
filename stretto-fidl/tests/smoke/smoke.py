"""Tests the installed wheel of stretto-fidl with a wheel of Stretto and no other package.

    python -I stretto-fidl/tests/smoke/smoke.py native|pure

The test compiles a definition, generates its bindings, and makes a call with the bindings. It
checks that the old name `stretto.fidl` works and, with a native wheel of Stretto, that the call is
traced.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import stretto
import stretto.flows
import stretto_fidl
from stretto_fidl.bindings import channel
from stretto_fidl.transport import Client, Server

FIDL = """
library smoke.adder;

closed protocol Adder {
    @trace("smoke.fidl")
    strict Add(struct { a int32; b int32; }) -> (struct { sum int32; });
};
"""


def check(condition: object, complaint: str) -> None:
    """Exit with `complaint` unless the condition is true. `python -O` doesn't remove this check."""
    if not condition:
        sys.exit(f"smoke: {complaint}")


def verb(*arguments: str) -> str:
    """Return the output of `stretto fidl` with some arguments."""
    command = [str(Path(sys.executable).with_name("stretto")), "fidl", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def bindings(folder: Path) -> Any:
    """Return the module that `stretto fidl generate` makes for the definition."""
    source, ir = folder / "adder.fidl", folder / "adder.json"
    source.write_text(FIDL)
    verb("compile", str(source), "--json", str(ir))
    verb("generate", str(ir), "--out", str(folder))
    sys.path.insert(0, str(folder))
    return importlib.import_module("smoke_adder")


def call(adder: Any) -> int:
    """Make a call to a server in a thread; return the sum in its reply."""

    class Handler:
        def Add(self, request: Any) -> Any:  # noqa: N802  # the method's name in FIDL
            return adder.AdderAddResponse(sum=request.a + request.b)

    near, far = channel()
    serving = threading.Thread(target=Server(adder.Adder, far, Handler()).serve)
    serving.start()
    with Client(adder.Adder, near) as client:
        result: int = client.Add(a=1, b=2).sum
    serving.join()
    return result


def main() -> None:
    """Compile a definition, generate bindings, make a call, and check its trace."""
    check(len(sys.argv) == 2 and sys.argv[1] in ("native", "pure"), "usage: smoke.py native|pure")
    package = Path(stretto_fidl.__file__ or "").parent
    check(package.is_relative_to(sys.prefix), f"stretto_fidl was imported from {package}")
    check((package / "py.typed").exists(), "py.typed is missing")
    check("stretto fidl compile" in verb("--help"), "`stretto fidl --help` lacks its subcommands")
    old = importlib.import_module("stretto.fidl.transport")
    check(old.Client is Client, "stretto.fidl is not stretto_fidl")
    with tempfile.TemporaryDirectory() as folder:
        adder, trace = bindings(Path(folder)), Path(folder, "smoke.pftrace")
        stretto.flows.install()
        with stretto.recording(str(trace)):
            check(call(adder) == 3, "a call returned a wrong sum")
        if sys.argv[1] == "native":
            check(b"smoke.adder/Adder" in trace.read_bytes(), "the call is not in the trace")
    print(f"smoke: stretto-fidl works with the {sys.argv[1]} wheel on {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
