"""What the documents point to exists."""

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
    """Those of both distributions."""
    folders = (ROOT, ROOT / "stretto-fidl")
    found = [path for folder in folders for path in folder.glob("*.md")]
    return sorted(
        [*found, *(path for folder in folders for path in (folder / "docs").rglob("*.md"))]
    )


def anchors(document: Path) -> set[str]:
    """The fragments that the headings of a document answer to, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", document.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken(document: Path, link: str) -> bool:
    """Whether a relative link leads nowhere; the network is not asked."""
    if re.match(r"[a-z]+:", link):
        return False
    path, _, fragment = link.partition("#")
    target = document.parent / path if path else document
    if not target.exists():
        return True
    return bool(fragment) and target.suffix == ".md" and fragment not in anchors(target)


def test_links_lead_somewhere() -> None:
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
    """(page, heading) for each citation of the formats; None for a page as a whole."""
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


def test_citations_are_found_across_lines() -> None:
    text = ' * Source: docs/formats/ipc.md, "Frames",\n * "Binding and\n * calls". "More"'
    assert list(cited_headings(text)) == [("ipc.md", "Frames"), ("ipc.md", "Binding and calls")]
    assert list(cited_headings("docs/formats/ipc.md.")) == [("ipc.md", None)]
    assert missing_heading("ipc.md", "Nothing of the kind")
    assert not missing_heading("ipc.md", "Frames")


def test_the_standing_documents_stand() -> None:
    for name in ("README", "ARCHITECTURE", "CONTRIBUTING", "CHANGES"):
        assert (ROOT / f"{name}.md").stat().st_size > 200


def test_broken_links_are_found(tmp_path: Path) -> None:
    document = tmp_path / "a.md"
    document.write_text("# One heading: here\n")
    assert not broken(document, "#one-heading-here")
    assert not broken(document, "https://example.com/nowhere")
    assert broken(document, "#another")
    assert broken(document, "b.md")
