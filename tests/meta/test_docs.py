"""Links, citations and names in the documents refer to things that exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.sources import ROOT, report, where

if TYPE_CHECKING:
    from collections.abc import Iterator

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def documents() -> list[Path]:
    """Return the Markdown documents of both distributions."""
    folders = (ROOT, ROOT / "stretto-fidl")
    found = [path for folder in folders for path in folder.glob("*.md")]
    return sorted(
        [*found, *(path for folder in folders for path in (folder / "docs").rglob("*.md"))]
    )


def anchors(document: Path) -> set[str]:
    """Return the URL fragments of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", document.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken(document: Path, link: str) -> bool:
    """Return whether a link is relative and its target is missing."""
    if re.match(r"[a-z]+:", link):
        return False
    path, _, fragment = link.partition("#")
    target = document.parent / path if path else document
    if not target.exists():
        return True
    return bool(fragment) and target.suffix == ".md" and fragment not in anchors(target)


def test_targets_of_relative_links_exist() -> None:
    violations = []
    for document in documents():
        text = FENCE.sub(lambda match: "\n" * match[0].count("\n"), document.read_text())
        for number, line in enumerate(text.splitlines(), 1):
            violations += [
                where(document, number, f"{link} leads nowhere")
                for link in LINK.findall(line)
                if broken(document, link)
            ]
    report(violations)


CITATION = re.compile(r"""docs/formats/(\w+\.md)((?:,[\s*#]+"[^"]+")*)""")


def cited_headings(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield (page, heading) for each citation of docs/formats; citations of pages have None."""
    for page, quoted in CITATION.findall(text):
        headings: list[str | None] = [
            re.sub(r"[\s*#]+", " ", name) for name in re.findall(r'"([^"]+)"', quoted)
        ]
        yield from ((page, heading) for heading in headings or [None])


def missing_heading(page: str, heading: str | None) -> bool:
    document = ROOT / "docs" / "formats" / page
    if not document.exists():
        return True
    return heading is not None and f"\n## {heading}\n" not in document.read_text()


def test_sources_cite_pages_and_headings_that_exist() -> None:
    sources = [
        p
        for folder in ("src", "stretto-fidl/src", "native")
        for p in (ROOT / folder).rglob("*.[pch]*")
    ]
    cited = {
        (path, page, heading)
        for path in sources
        if path.suffix in {".py", ".c", ".h"}
        for page, heading in cited_headings(path.read_text())
    }
    assert len(cited) > 40, "the pattern finds no citations any more"
    report(
        [where(p, 1, f"cites {page}, {h!r}") for p, page, h in cited if missing_heading(page, h)]
    )


def test_citations_that_span_lines_are_found() -> None:
    text = ' * Source: docs/formats/ipc.md, "Frames",\n * "Binding and\n * calls". "More"'
    assert list(cited_headings(text)) == [("ipc.md", "Frames"), ("ipc.md", "Binding and calls")]
    assert list(cited_headings("docs/formats/ipc.md.")) == [("ipc.md", None)]
    assert missing_heading("ipc.md", "Nothing of the kind")
    assert not missing_heading("ipc.md", "Frames")


def test_top_level_documents_exist() -> None:
    for name in ("README", "ARCHITECTURE", "CONTRIBUTING", "CHANGES"):
        assert (ROOT / f"{name}.md").stat().st_size > 200


def test_broken_links_are_reported(tmp_path: Path) -> None:
    document = tmp_path / "a.md"
    document.write_text("# One heading: here\n")
    assert not broken(document, "#one-heading-here")
    assert not broken(document, "https://example.com/nowhere")
    assert broken(document, "#another")
    assert broken(document, "b.md")


ARCHITECTURE = ROOT / "ARCHITECTURE.md"
BASES = (ROOT, ROOT / "src/stretto", ROOT / "native", ROOT / "stretto-fidl/src")
"""Folders from which the paths in ARCHITECTURE.md start."""
NAMED_FILE = re.compile(r"(?<![\w./-])((?:[\w-]+/)*\w+\.(?:py|[ch]|md))\b(?::(\w+(?:\.\w+)*))?")
NAMED_FOLDER = re.compile(r"`((?:[\w-]+/)+)`")


def find_path(named: str) -> Path | None:
    return next((base / named for base in BASES if (base / named).exists()), None)


def bad_reference(named: str, names: str) -> str | None:
    """Return why a reference such as `file:Class.method` is wrong; None if it is right."""
    if named == "Python.h":  # Python.h is a file of CPython, not of this repository
        return None
    path = find_path(named)
    if path is None:
        return f"{named} does not exist"
    text = path.read_text()
    missing = [n for n in names.split(".") if n and not re.search(rf"\b{n}\b", text)]
    return f"{named} has no {missing[0]}" if missing else None


def tree_folders(text: str) -> list[str]:
    """Return the folders in the first code block of a document, as paths from the root."""
    block = text.split("```")[1]
    found: list[str] = []
    parents: dict[int, str] = {}
    for indent, folder in re.findall(r"^( *)([\w/-]+/) ", block, re.MULTILINE):
        parents[len(indent)] = parents.get(len(indent) - 2, "") + folder
        found.append(parents[len(indent)])
    return found


def test_files_and_names_in_architecture_exist() -> None:
    violations = []
    for number, line in enumerate(ARCHITECTURE.read_text().splitlines(), 1):
        wrong = [bad_reference(named, names) for named, names in NAMED_FILE.findall(line)]
        wrong += [f"{f} does not exist" for f in NAMED_FOLDER.findall(line) if not find_path(f)]
        violations += [where(ARCHITECTURE, number, text) for text in wrong if text]
    report(violations)


def test_tree_in_architecture_equals_the_tree_on_disk() -> None:
    shown = tree_folders(ARCHITECTURE.read_text())
    assert [folder for folder in shown if not (ROOT / folder).is_dir()] == []
    package = ROOT / "src/stretto"
    packages = {p.parent for p in package.glob("*/__init__.py")}
    packages |= {p.parent for p in package.glob("*/*/__init__.py")}
    native = {p.parent for p in (ROOT / "native").rglob("*.c")}
    on_disk = {f"{folder.relative_to(ROOT).as_posix()}/" for folder in packages | native}
    assert on_disk - set(shown) == set(), "folders that ARCHITECTURE.md does not show"


def test_bad_references_in_architecture_are_reported() -> None:
    assert bad_reference("cli/verbs.py", "VERBS") is None
    assert bad_reference("cli/verbs.py", "NO_SUCH_NAME") == "cli/verbs.py has no NO_SUCH_NAME"
    assert bad_reference("cli/nothing.py", "") == "cli/nothing.py does not exist"
    assert NAMED_FILE.findall("`cli/a.py:B.c`, core/d.h") == [("cli/a.py", "B.c"), ("core/d.h", "")]
