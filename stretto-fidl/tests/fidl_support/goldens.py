"""Compares our JSON IR with golden files of Fuchsia's FIDL compiler.

    python -m fidl_support.goldens FOLDER [--library-dir FOLDER] [-v]

FOLDER holds, at any depth, `NAME.test.fidl` files, or folders `NAME` of such files, and
`NAME.json.golden` files. Imported libraries are searched in FOLDER and in the library folders. The
program prints `passed`, `failed` or `unsupported` for each golden file, with `-v` also its first
difference, and the numbers of all results. The exit code is 1 if a golden failed.

A golden matches our IR if both are equal, including the order of keys, after these changes:

- file names are reduced to their last part;
- forms of older compilers are accepted: `kind` beside or instead of `kind_v2`, `has_envelope`,
  type shapes of wire format 1, a missing `deprecated`, `platform` or `kind` of a method, and
  versions of 64 bits;
- `available` and `experiments` are flags of the build, and are left out, as are the
  declarations of dependencies that are missing in the golden.

A golden is unsupported if its definitions can't be found, or use features that this compiler
refuses.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stretto_fidl.compiler import compile_files
from stretto_fidl.compiler.parser import parse
from stretto_fidl.compiler.source import SourceFile
from stretto_fidl.errors import CompileError

BUILD_FLAGS = ("available", "experiments")
OF_OLD_COMPILERS = ("has_envelope", "type_shape_v1", "field_shape_v1", "documentation")
DECLARATIONS = ("struct", "table", "union", "enum", "bits", "overlay")
MAYBE_MISSING = ("deprecated", "platform", "overlay_declarations")
VERSIONS = ("added", "deprecated", "removed", "replaced")
PASSED, FAILED, UNSUPPORTED = "passed", "failed", "unsupported"


class Suite:
    """The FIDL definitions and golden files of a folder.

    Args:
        folder: Folder of the definitions and golden files.
        libraries: Additional folders with definitions.
    """

    def __init__(self, folder: Path, libraries: list[Path]) -> None:
        self.goldens = sorted(
            path for path in folder.rglob("*.json.golden") if ".index." not in path.name
        )
        self._libraries: dict[str, list[Path]] = {}
        self._uses: dict[Path, list[str]] = {}
        for path in sorted(p for each in [folder, *libraries] for p in each.rglob("*.fidl")):
            self._index(path)

    def _index(self, path: Path) -> None:
        try:
            file = parse(SourceFile(str(path), path.read_text()))
        except CompileError:
            return
        self._libraries.setdefault(file.library, []).append(path)
        self._uses[path] = [using.library for using in file.using]

    def sources(self, golden: dict[str, Any]) -> tuple[list[Path], list[Path]]:
        """Return the files of a golden's library, and the files of the libraries that it needs.

        Raises:
            LookupError: The files don't exist.
        """
        own = self._libraries.get(golden["name"])
        if not own:
            raise LookupError(f"no definitions of {golden['name']}")
        needed: dict[Path, None] = {}
        waiting = list(own)
        while waiting:
            for library in self._uses[waiting.pop()]:
                if library not in self._libraries and library != "zx":
                    raise LookupError(f"no definitions of {library}")
                found = [p for p in self._libraries.get(library, []) if p not in needed]
                needed |= dict.fromkeys(found)
                waiting += found
        return own, list(needed)


def compare(suite: Suite, path: Path) -> tuple[str, str]:
    """Compare a golden file with our IR; return PASSED, FAILED or UNSUPPORTED, and the reason."""
    golden = json.loads(path.read_text())
    try:
        files, dependencies = suite.sources(golden)
        ir = compile_files(files, dependencies=dependencies)
    except (LookupError, CompileError) as error:
        return UNSUPPORTED, str(error).splitlines()[0]
    difference = next(differences(expected(golden), ours(ir, golden), "ir"), None)
    return (PASSED, "") if difference is None else (FAILED, difference)


def expected(node: Any) -> Any:
    """Return the content of a golden file without keys that only older compilers wrote."""
    if isinstance(node, list):
        return [expected(each) for each in node]
    if not isinstance(node, dict):
        return node
    if {"filename", "line"} <= node.keys():
        return node | {"filename": Path(node["filename"]).name}
    left_out = (*OF_OLD_COMPILERS, *BUILD_FLAGS)
    return {key: expected(value) for key, value in of_today(node).items() if key not in left_out}


def of_today(node: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON node in the form in which the current compiler writes it.

    Older compilers write uses of types in another form.
    """
    if node.get("name") in VERSIONS and node.get("type") == "uint64":
        return node | {"type": "uint32"}
    if "kind_v2" in node:
        return {key: value for key, value in node.items() if key != "kind"}
    kind = str(node.get("kind", "struct"))
    if "type_shape_v2" not in node or kind in DECLARATIONS:
        return node
    name = {"request": "subtype", "identifier": "identifier"}.get(kind, "")
    if "protocol_transport" not in node or name not in node:
        return {{"kind": "kind_v2"}.get(key, key): value for key, value in node.items()}
    role = "server" if kind == "request" else "client"
    head = {"kind_v2": "endpoint", "role": role, "protocol": node[name]}
    return head | {key: value for key, value in node.items() if key not in ("kind", name)}


def ours(ir: dict[str, Any], golden: dict[str, Any]) -> Any:
    """Return our IR without keys that the older compiler of the golden file didn't write."""
    has_method_kinds = '"twoway"' in json.dumps(golden) or '"oneway"' in json.dumps(golden)
    missing = {key for key in MAYBE_MISSING if f'"{key}"' not in json.dumps(golden)}
    known = {d["name"]: d["declarations"] for d in golden.get("library_dependencies", [])}

    def reduced(node: Any) -> Any:
        if isinstance(node, list):
            return [reduced(each) for each in node]
        if not isinstance(node, dict):
            return node
        node = {k: v for k, v in node.items() if k not in missing and k not in BUILD_FLAGS}
        if "has_request" in node and not has_method_kinds:
            del node["kind"]
        if {"filename", "line"} <= node.keys():
            return node | {"filename": Path(node["filename"]).name}
        return {key: reduced(value) for key, value in node.items()}

    result = reduced(ir)
    for dependency in result["library_dependencies"]:
        there = known.get(dependency["name"], {})
        dependency["declarations"] = {
            name: declaration
            for name, declaration in dependency["declarations"].items()
            if name in there
        }
    return result


def differences(golden: Any, own: Any, where: str) -> Iterator[str]:
    """Yield all differences between two JSON documents, in order."""
    if isinstance(golden, dict) and isinstance(own, dict):
        if list(golden) != list(own):
            yield f"{where}: keys {list(golden)}, ours {list(own)}"
        for key in golden.keys() & own.keys():
            yield from differences(golden[key], own[key], f"{where}.{key}")
    elif isinstance(golden, list) and isinstance(own, list):
        if len(golden) != len(own):
            yield f"{where}: {len(golden)} elements, ours {len(own)}"
        for number, (theirs, mine) in enumerate(zip(golden, own, strict=False)):
            yield from differences(theirs, mine, f"{where}[{number}]")
    elif golden != own:
        yield f"{where}: {golden!r}, ours {own!r}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare our IR with goldens.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--library-dir", type=Path, action="append", default=[])
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    suite = Suite(options.folder, options.library_dir)
    sums = dict.fromkeys((PASSED, FAILED, UNSUPPORTED), 0)
    for path in suite.goldens:
        verdict, reason = compare(suite, path)
        sums[verdict] += 1
        print(f"{verdict:<12} {path.name}" + (f"  {reason}" if options.verbose and reason else ""))
    print(", ".join(f"{count} {verdict}" for verdict, count in sums.items()))
    return 1 if sums[FAILED] else 0


if __name__ == "__main__":
    sys.exit(main())
