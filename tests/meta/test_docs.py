"""What the documents point to exists."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.sources import ROOT, report, where

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def documents() -> list[Path]:
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


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
