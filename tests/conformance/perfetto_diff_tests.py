"""Runs the diff tests of Perfetto's trace processor on Stretto.

    git clone https://github.com/google/perfetto; pip install grpcio-tools
    python tests/conformance/perfetto_diff_tests.py REPOSITORY [--only REGEX] [--agreed FILE]

A diff test is a trace, a query and the expected rows. Tests are left out that need a recording from
Perfetto's bucket, that ask for a metric, or whose rows Perfetto's trace processor v52 doesn't give.
The others are run; the script prints each failure, and the passed and failed tests by folder.
`--agreed` names a file in which the names of the tests are kept on which v52 agrees, so that the
next run doesn't need to ask it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

from stretto.analysis import TraceProcessor
from tests.support.oracle import Oracle

Ask = Callable[[str], tuple[list[str], list[tuple[Any, ...]]]]

PROTOS = (
    "protos/perfetto/trace/trace.proto",
    "protos/perfetto/trace/test_extensions.proto",
    "protos/third_party/chromium/chrome_track_event.proto",
    "protos/third_party/chromium/chrome_enums.proto",
)

NOT_OFFERED = (
    "metrics",
    "parser/android",
    "parser/cros",
    "parser/etm",
    "parser/graphics",
    "parser/power",
    "parser/translated_args",
    "parser/ufs",
    "stdlib/android",
    "stdlib/chrome",
    "stdlib/pixel",
    "stdlib/pkvm",
    "stdlib/wattson",
)
"""Folders whose tests ask for tables of Android, ChromeOS or Chrome that Stretto doesn't have."""


class LeftOutError(Exception):
    """A test isn't run; the message is the reason."""


class Case(NamedTuple):
    """A test."""

    name: str
    blueprint: Any
    folder: str


class Traces:
    """Makes the traces of the tests, with the message types of the repository."""

    def __init__(self, repository: Path, scratch: Path) -> None:
        self._repository = repository
        self._descriptors = scratch / "descriptors"
        command = ["grpc_tools.protoc", "--include_imports", f"-I{repository}"]
        subprocess.run(
            [sys.executable, "-m", *command, f"--descriptor_set_out={self._descriptors}", *PROTOS],
            check=True,
        )
        pool = descriptor_pool.DescriptorPool()
        files = descriptor_pb2.FileDescriptorSet.FromString(self._descriptors.read_bytes())
        for file in files.file:
            pool.Add(file)
        name = "perfetto.protos.Trace"
        self._message = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))

    def make(self, blueprint: Any) -> bytes:
        """Return the trace of a test."""
        trace = blueprint.trace
        kind = type(trace).__name__
        if kind == "DataPath":
            raise LeftOutError("needs a recording")
        if kind == "Path":
            made = self._from_file(Path(blueprint.index_dir, trace.filename))
        elif kind == "TextProto":
            made = self._from_text(trace.contents)
        elif kind in ("Json", "Systrace", "RawText"):
            made = trace.contents.encode()
        else:
            raise LeftOutError(f"its trace is a {kind}")
        if blueprint.trace_modifier is None:
            return made
        message = self._message.FromString(made)
        blueprint.trace_modifier.inject(message)
        return bytes(message.SerializeToString())

    def _from_text(self, text: str) -> bytes:
        try:
            return bytes(text_format.Parse(text, self._message()).SerializeToString())
        except text_format.ParseError as error:
            raise LeftOutError("its trace can't be compiled") from error

    def _from_file(self, path: Path) -> bytes:
        if path.suffix == ".textproto":
            return self._from_text(path.read_text())
        if path.suffix != ".py":
            return path.read_bytes()
        result = subprocess.run(
            [sys.executable, path, self._descriptors],
            env={**os.environ, "PYTHONPATH": str(self._repository / "test")},
            capture_output=True,
            check=False,
        )
        if result.returncode:
            raise LeftOutError("its trace can't be generated")
        return result.stdout


def cases(repository: Path) -> Iterator[Case]:
    """Load the tests of a repository."""
    folder = repository / "test" / "trace_processor" / "diff_tests"
    sys.path[:0] = [str(repository), str(folder)]
    index: Any = __import__("include_index")
    for name, blueprint in index.fetch_all_diff_tests(str(folder)):
        yield Case(name, blueprint, os.path.relpath(blueprint.index_dir, folder))


def query_of(blueprint: Any) -> str:
    """Return the SQL of a test."""
    query = blueprint.query
    if isinstance(query, str):
        return query
    if type(query).__name__ != "Path":
        raise LeftOutError(f"asks for a {type(query).__name__}")
    return Path(blueprint.index_dir, query.filename).read_text()


def expected_of(blueprint: Any) -> list[str]:
    """Return the lines that the trace processor's shell is expected to print."""
    out = blueprint.out
    kind = type(out).__name__
    if kind not in ("Csv", "Path") or blueprint.register_files_dir:
        raise LeftOutError(f"expects a {kind}")
    text = out.contents if kind == "Csv" else Path(blueprint.index_dir, out.filename).read_text()
    return stripped(text)


def printed(columns: list[str], rows: list[tuple[Any, ...]]) -> list[str]:
    """Return the lines that the trace processor's shell prints for an answer."""
    lines = (",".join(map(_cell, row)) for row in [tuple(columns), *rows])
    return stripped("\n".join(lines))


def stripped(text: str) -> list[str]:
    """Return the lines of a text without blank lines and without spaces around them."""
    return [line for line in map(str.strip, text.splitlines()) if line]


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, float):
        return f"{value:f}"
    if isinstance(value, bytes):
        return '"<raw bytes>"'
    return '"[NULL]"' if value is None else str(int(value))


def ask_stretto(trace: bytes) -> Ask:
    """Load a trace into Stretto."""
    processor = TraceProcessor(trace)

    def ask(sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        result = processor.query(sql)
        return list(result.columns), result.fetchall()

    return ask


def failure(load: Callable[[], Ask], sql: str, expected: list[str]) -> str | None:
    """Return why a side doesn't give the expected rows, or None."""
    try:
        found = printed(*load()(sql))
    except Exception as error:  # Any error is a failed test.
        return f"{type(error).__name__}: {str(error).strip()[:300]}"
    for i, (mine, its) in enumerate(zip(found, expected, strict=False)):
        if mine != its:
            return f"line {i}: {mine[:200]!r}, expected {its[:200]!r}"
    if len(found) != len(expected):
        return f"{len(found)} lines, expected {len(expected)}"
    return None


class Judge:
    """Knows on which tests Perfetto's trace processor agrees."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        text = path.read_text() if path and path.exists() else ""
        self._known = {name: word == "yes" for word, name in map(str.split, text.splitlines())}

    def agrees(self, name: str, trace: bytes, sql: str, expected: list[str]) -> bool:
        """Whether the trace processor gives the expected rows."""
        if name not in self._known:
            agrees = failure(lambda: Oracle(trace).table, sql, expected) is None
            self._known[name] = agrees
            if self._path:
                with self._path.open("a") as file:
                    file.write(f"{'yes' if agrees else 'no'} {name}\n")
        return self._known[name]


def run(case: Case, traces: Traces, judge: Judge) -> str | None:
    """Run a test; return why it fails, or None.

    Raises:
        LeftOutError: The test isn't run.
    """
    sql, expected = query_of(case.blueprint), expected_of(case.blueprint)
    trace = traces.make(case.blueprint)
    if not judge.agrees(f"{case.folder}:{case.name}", trace, sql, expected):
        raise LeftOutError("v52 doesn't agree")
    return failure(lambda: ask_stretto(trace), sql, expected)


def main() -> int:
    """Run the tests; return 1 if more than 15 % fail."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("repository", type=Path, help="a copy of github.com/google/perfetto")
    parser.add_argument("--only", default="", help="part of the name or folder of the tests")
    parser.add_argument("--agreed", type=Path, help="keeps on which tests v52 agrees")
    options = parser.parse_args()
    counts: dict[str, Counter[str]] = {}
    left_out = Counter[str]()
    judge = Judge(options.agreed)
    with tempfile.TemporaryDirectory() as scratch:
        repository = options.repository.resolve()
        traces = Traces(repository, Path(scratch))
        for case in cases(repository):
            if options.only not in f"{case.folder}:{case.name}":
                continue
            try:
                reason = run(case, traces, judge)
            except LeftOutError as error:
                left_out[str(error)] += 1
                continue
            counts.setdefault(case.folder, Counter())["failed" if reason else "passed"] += 1
            if reason:
                print(f"{case.folder}:{case.name}: {reason}", flush=True)
    return report(counts, left_out)


def report(counts: dict[str, Counter[str]], left_out: Counter[str]) -> int:
    """Print the results by folder."""
    total = Counter[str]()
    for folder, count in sorted(counts.items()):
        offered = not folder.startswith(NOT_OFFERED)
        note = "" if offered else "  (tables that Stretto doesn't have)"
        print(f"{folder:30} {count['passed']:4} passed {count['failed']:4} failed{note}")
        total += count if offered else Counter()
    share = total["passed"] / max(1, total.total())
    print(
        f"{total['passed']} of {total.total()} tests passed, {share:.1%}; {dict(left_out)} left out"
    )
    return int(share < 0.85)


if __name__ == "__main__":
    sys.exit(main())
