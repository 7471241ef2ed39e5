"""Compares ProtoZero with libprotobuf: from setting fields to bytes, and back.

    python bench/protozero.py [--json] [--rounds N]

The message Simple has two 32-bit and two 64-bit integers and a string of 32 bytes. In the message
Nested, the same fields are three levels deep.

`native` compares our C writer with C++ libprotobuf on an arena. `light` compares our C writer with
a hard-coded loop that writes the bytes. `python` compares our writers with google.protobuf.
`decode` reads timestamp, type, track and name of each packet of a trace; ours uses a selector,
google.protobuf uses attributes. In `decode_attributes`, both use attributes. `text` parses a packet
with 2 MB of bytes in the text format, `json` parses it in JSON; the figures are per character.
`tokenizer` splits a trace of 100 MB; it is compared with a limit of 1 GB/s.

Each round measures all operations; figures are medians of CPU time. `target` is the maximum of
`ratio`. The C++ side needs g++, protoc and libprotobuf's headers (Debian:
protobuf-compiler, libprotobuf-dev); without them its rows are left out, and stderr says so.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

HERE = Path(__file__).parent
CORE = HERE.parent / "native" / "core"

TARGETS = {
    "simple/native": 0.6,
    "nested/native": 0.5,
    "simple/python": 0.25,
    "nested/python": 0.4,
    "decode/python": 0.2,
    "text/python": 1.0,
    "json/python": 1.0,
    "tokenizer/python": 1.0,
}

Figures = dict[str, float]
Row = dict[str, object]


class MissingToolError(Exception):
    """A required tool is not installed. The message says how to install it."""


def run(*command: str) -> str:
    """Return the output of a command.

    Raises:
        MissingToolError: The command failed, or is not installed.
    """
    try:
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError:
        raise MissingToolError(f"{command[0]} isn't installed") from None
    except subprocess.CalledProcessError as error:
        lines = error.stderr.strip().splitlines() or ["no output"]
        raise MissingToolError(f"{Path(command[0]).name} failed: {lines[-1]}") from None
    return done.stdout


def build_descriptors(folder: str) -> str:
    """Return the schema as a descriptor set; a protoc from a Python package is sufficient."""
    path = f"{folder}/bench.desc"
    protoc = shutil.which("protoc")
    prefix = [protoc] if protoc else [sys.executable, "-m", "grpc_tools.protoc"]
    schema = str(HERE / "_protozero.proto")
    run(*prefix, f"-I{HERE}", f"--descriptor_set_out={path}", schema)
    return path


def build_native(folder: str) -> str:
    program = f"{folder}/native"
    sources = [str(CORE / "message.c"), str(CORE / "stream_writer.c")]
    flags = ["-std=c11", "-D_GNU_SOURCE", "-O2", "-DNDEBUG", f"-I{HERE}", f"-I{CORE}"]
    run("cc", *flags, str(HERE / "_protozero.c"), *sources, "-o", program)
    return program


def build_libprotobuf(folder: str) -> str:
    program = f"{folder}/libprotobuf"
    run("protoc", f"-I{HERE}", f"--cpp_out={folder}", str(HERE / "_protozero.proto"))
    flags = ["-std=c++17", "-O2", "-DNDEBUG", f"-I{HERE}", f"-I{folder}"]
    sources = [str(HERE / "_protozero.cc"), f"{folder}/_protozero.pb.cc"]
    run("g++", *flags, *sources, "-o", program, "-lprotobuf", "-lpthread")
    return program


def build(folder: str) -> dict[str, list[str]]:
    """Return the programs that can run here, by name; report the others on stderr."""
    commands = {"native": [build_native(folder)]}
    try:
        commands["libprotobuf"] = [build_libprotobuf(folder)]
    except MissingToolError as error:
        hint = "apt install g++ protobuf-compiler libprotobuf-dev"
        print(f"left out the rows of libprotobuf: {error} ({hint})", file=sys.stderr)
    try:
        script = str(HERE / "_protozero_python.py")
        commands["python"] = [sys.executable, script, build_descriptors(folder)]
    except MissingToolError as error:
        print(f"left out the rows of google.protobuf: {error} (protobuf-compiler)", file=sys.stderr)
    return commands


def measure(rounds: int) -> dict[str, Figures]:
    """Run all rounds; return the medians of our figures and of the peer's for each row."""
    samples: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        commands = build(folder)
        for number in range(rounds):
            outputs = {name: json.loads(run(*command)) for name, command in commands.items()}
            for name, pair in pairs(outputs).items():
                kept = samples.setdefault(name, {"ours": [], "peer": []})
                for side, value in pair.items():
                    kept[side].append(value)
            print(f"round {number + 1} of {rounds}", file=sys.stderr)
    return {
        name: {side: median(values) for side, values in pair.items()}
        for name, pair in samples.items()
    }


def pairs(outputs: dict[str, dict[str, float]]) -> dict[str, Figures]:
    """Return our figure and the peer's for each row `operation/peer` of one round."""
    native = outputs["native"]
    found: dict[str, Figures] = {}
    for operation in ("simple", "nested"):
        if peer := outputs.get("libprotobuf"):
            pair = {"ours": native[operation], "peer": peer[operation]}
            found[f"{operation}/native"] = pair
        light = native[f"light_{operation}"]
        found[f"{operation}/light"] = {"ours": native[operation], "peer": light}
    found |= {f"{name}/python": pair for name, pair in outputs.get("python", {}).items()}  # type: ignore[misc]
    return found


def row(name: str, figures: Figures) -> Row:
    return {
        "name": name,
        "ours": round(figures["ours"], 2),
        "peer": round(figures["peer"], 2),
        "unit": "ms" if name == "tokenizer/python" else "ns",
        "ratio": round(figures["ours"] / figures["peer"], 3),
        "target": TARGETS.get(name),
    }


def main() -> int:
    """Measure all rows and print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON object per row")
    parser.add_argument("--rounds", type=int, default=7, help="rounds through all of them")
    options = parser.parse_args()
    try:
        figures = measure(options.rounds)
    except MissingToolError as error:
        print(f"bench/protozero.py: {error}", file=sys.stderr)
        return 1
    for line in (row(*item) for item in figures.items()):
        if options.json:
            print(json.dumps(line))
        else:
            goal = f"  (target {line['target']})" if line["target"] else ""
            head = f"{line['name']:25} {line['ours']:>9} {line['peer']:>9}"
            print(f"{head} {line['unit']}  x{line['ratio']}{goal}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
