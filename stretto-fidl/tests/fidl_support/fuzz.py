"""Changes FIDL definitions, messages and IR at random, and checks the results.

    python -m fidl_support.fuzz --seconds 600 [--seed 7] [--target decoder]

A definition must compile to an IR or raise `CompileError`. An IR must give loaded and generated
classes, or raise `FidlError`. A message must decode to a value that encodes to the same message, or
raise `WireError` and leave no handle open. Any other result is printed with the data to reproduce
it, and the exit code is 1. `tests/property/test_fuzz.py` runs a few examples.
"""

from __future__ import annotations

import argparse
import copy
import json
import re
import sys
import time
import traceback
import tracemalloc
from collections.abc import Callable
from random import Random
from typing import Any

from fidl_support.codec_checks import SEEDS, check, open_handles
from fidl_support.codec_checks import WORDS as NUMBERS
from fidl_support.mistakes import AGED, CASES, FDF, OTHER
from fidl_support.samples import SAMPLES, WORDS
from fidl_support.vectors.groups import TYPES
from stretto_fidl.bindings import load
from stretto_fidl.bindings.generator import generate
from stretto_fidl.compiler import compile_sources
from stretto_fidl.errors import CompileError, FidlError

SECONDS = 5
"""The time limit of an example, far above what an example takes on a busy machine."""
MAX_MEMORY = 16 << 20
"""The limit of memory for a decoded message of up to 64 KiB, in bytes."""

VERSIONED = """\
@available(added=1, removed=9)
library test.versioned;
@available(replaced=3) type A = struct { a uint8; @available(removed=2) b bool; };
@available(added=3, deprecated=5) type A = table { @available(removed=7) 1: a uint8; };
type E = strict(removed=4) flexible(added=4) enum : int8 { X = 1; @available(added=2) Y = 2; };
open protocol P {
    @available(replaced=2) M() -> () error int32;
    @available(added=2, deprecated=5) M(A) -> (struct { e E; }) error int32;
    @available(added=3, removed=6) compose Q;
};
protocol Q { @available(deprecated=5, removed=8) flexible O(struct { in vector<A>:5; }); };
"""
DEPENDENCIES = {"other": OTHER, "aged": AGED, "fdf": FDF}
TEXTS = [
    *SAMPLES,
    VERSIONED,
    *(text if "library" in text else f"library test.x;\n{text}" for text in CASES.values()),
]
_WORD = re.compile(r"\w+|\s+|.", re.DOTALL)
ALL_WORDS = [*WORDS, *(word for text in TEXTS for word in _WORD.findall(text))]


def some_text(random: Random) -> str:
    """Return one of the test definitions with up to five random changes."""
    words = _WORD.findall(random.choice(TEXTS))
    for _ in range(random.randint(0, 5)):
        at, other = random.randrange(len(words)), random.randrange(len(words))
        match random.randrange(4):
            case 0:
                del words[at : at + random.randint(1, 3)]
            case 1:
                words.insert(at, random.choice(ALL_WORDS))
            case 2:
                words[at] = random.choice(ALL_WORDS)
            case 3:
                words[at:at] = words[other : other + random.randint(1, 20)]
        words = words or ["x"]
    return "".join(words)


def fuzz_compiler(random: Random) -> Any:
    """Yield a random FIDL text, and compile it. Load its IR, and generate modules from the IR."""
    text = some_text(random)
    yield text
    try:
        ir = compile_sources({"fuzz.fidl": text}, dependencies=DEPENDENCIES)
    except CompileError as error:
        places = [each.line > 0 or not each.filename for each in error.errors]
        if not (all(places) and str(error)):
            raise AssertionError("an error without a place") from error
        return
    read(json.loads(json.dumps(ir)), is_right=not ir.get("overlay_declarations"))


def read(ir: Any, is_right: bool) -> None:
    """Load an IR, and generate modules from it."""
    for make in (load, generate):
        try:
            made = make(ir)
        except FidlError:
            assert not is_right
            continue
        if make is generate:
            for name, text in made.items():
                compile(text, name, "exec")


def _nodes(node: Any) -> list[Any]:
    inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return [node, *(each for value in inner for each in _nodes(value))]


IRS = [compile_sources({"seed.fidl": text}) for text in (*SAMPLES, VERSIONED)]
STRANGE: list[Any] = [
    *(None, True, -1, 1 << 70, 1.5, "", "x", "test/X", "x\ny", [], {}, ["x"], {"name": "x"}),
    *("struct", "identifier", "array", "vector", "handle", "uint8", "unknown", "0", "1e400"),
]


def fuzz_ir(random: Random) -> Any:
    """Load and generate an IR of which some values were removed, exchanged or replaced."""
    ir = copy.deepcopy(random.choice(IRS))
    for _ in range(random.randint(1, 4)):
        places = [node for node in _nodes(ir) if isinstance(node, dict | list) and node]
        node = random.choice(places or [ir])
        key: Any = random.choice([*node] if isinstance(node, dict) else range(len(node)))
        if random.random() < 0.3:
            del node[key]
        else:
            other = random.choice(_nodes(random.choice(IRS)))
            node[key] = random.choice([random.choice(STRANGE), copy.deepcopy(other)])
        if not ir:
            break
    yield json.dumps(ir)
    read(ir, is_right=False)


def fuzz_decoder(random: Random) -> Any:
    """Decode a changed message of a test vector in v1 or v2, with a changed number of handles."""
    name, seed, count, wire = random.choice(SEEDS)
    message = bytearray(seed)
    for _ in range(random.randint(1, 4)):
        at = random.randint(0, len(message))
        match random.randrange(6):
            case 0:
                message[at : at + 1] = random.randbytes(1)
            case 1:
                message[at & -8 : (at & -8) + 8] = random.choice(NUMBERS).to_bytes(8, "little")
            case 2:
                del message[at : at + random.choice([1, 2, 4, 8, 16])]
            case 3:
                message[at:at] = random.choice([bytes(8), b"\xff" * 8, random.randbytes(8)])
            case 4:
                message += message[at & -8 :] * random.choice([1, 1, 1, 50])
            case 5:
                count, wire = random.randint(0, 5), random.choice([wire, 3 - wire])
    del message[1 << 16 :]
    yield name, message.hex(), count, wire
    with open_handles(count) as handles:
        check(getattr(TYPES, name), bytes(message), handles, wire)


def _numbers(random: Random) -> bytes:
    count = random.randint(1, 3)
    return b"".join(random.choice(NUMBERS).to_bytes(8, "little") for _ in range(count))


def fuzz_memory(random: Random) -> Any:
    """Decode a message of 64 KiB, and check how much memory the decoder uses.

    The message begins with random counts, and then repeats random numbers.
    """
    name, *_ = random.choice(SEEDS)
    head, words = _numbers(random), _numbers(random)
    message = (head + words * 8192)[: 1 << 16]
    yield name, head.hex(), words.hex()
    tracemalloc.start()
    try:
        check(getattr(TYPES, name), message, [])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < MAX_MEMORY, f"{peak} bytes"


TARGETS: dict[str, Callable[[Random], Any]] = {
    "compiler": fuzz_compiler,
    "ir": fuzz_ir,
    "decoder": fuzz_decoder,
    "memory": fuzz_memory,
}


def one(target: str, seed: int) -> str | None:
    """Run one example, and return its failure; None if it passes."""
    example: Any = None
    start = time.monotonic()
    try:
        for example in TARGETS[target](Random(f"{target} {seed}")):  # noqa: B007 - told below
            start = time.monotonic()
    except Exception:
        return f"{target} {seed}: {example}\n{traceback.format_exc(limit=-6)}"
    seconds = time.monotonic() - start
    return f"{target} {seed}: {example}\ntook {seconds:.1f} s" if seconds > SECONDS else None


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0, help="of the first example")
    parser.add_argument("--target", choices=TARGETS, action="append")
    options = parser.parse_args()
    targets = options.target or list(TARGETS)
    end, seed, wrong = time.monotonic() + options.seconds, options.seed, 0
    while time.monotonic() < end and wrong < 20:
        for target in targets:
            if found := one(target, seed):
                wrong += 1
                print(found)
        seed += 1
    print(f"{seed - options.seed} examples of {', '.join(targets)}: {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
