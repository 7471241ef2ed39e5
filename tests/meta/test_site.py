"""The documentation site has every page, with the same link targets as a checkout.

`make docs` builds the site, with warnings as errors; these tests need no mkdocs.
"""

from __future__ import annotations

import re

from tests.support.sources import ROOT
from tools import site_hooks

CONFIG = (ROOT / "mkdocs.yml").read_text("utf-8")
NAVIGATION = set(re.findall(r"\s([\w/]+\.md)$", CONFIG.partition("\nnav:")[2], re.MULTILINE))


def test_each_page_is_in_the_navigation() -> None:
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert pages | set(site_hooks.outside_pages().values()) == NAVIGATION


def test_pages_copied_from_outside_docs_replace_no_page_in_docs() -> None:
    for source, place in site_hooks.outside_pages().items():
        assert (ROOT / source).exists()
        assert not (ROOT / "docs" / place).exists()


def test_objects_named_in_the_reference_pages_exist() -> None:
    pages = sorted((ROOT / "docs" / "reference").glob("*.md"))
    names = [name for page in pages for name in re.findall(r"^::: (\S+)", page.read_text(), re.M)]
    assert len(names) > 20
    assert [name for name in names if not is_object(name)] == []


def is_object(name: str) -> bool:
    """Return whether a name is a module or is defined in the source of its module."""
    folder = ROOT / ("stretto-fidl/src" if name.startswith("stretto_fidl") else "src")
    path = folder / name.replace(".", "/")
    if path.with_suffix(".py").exists() or (path / "__init__.py").exists():
        return True
    sources = (path.parent.with_suffix(suffix) for suffix in (".py", ".pyi"))
    definition = re.compile(rf"^(class|def) {path.name}\b|^{path.name}\b.*=", re.MULTILINE)
    return any(source.exists() and definition.search(source.read_text()) for source in sources)


def test_index_links_to_a_page_for_each_audience() -> None:
    links = site_hooks.LINK.findall((ROOT / "docs" / "index.md").read_text("utf-8"))
    assert {
        "record.md", "events.md", "libraries.md", "embedding.md", "testing.md", "system.md",
        "../CONTRIBUTING.md", "reference/stretto.md",
    } <= {link for _, link, _, _ in links}  # fmt: skip


def links_from(page: str) -> set[str]:
    """Return the pages of the repository that a page links to."""
    links = site_hooks.LINK.findall((ROOT / page).read_text("utf-8"))
    targets = {site_hooks.target_of(page, link) for _, link, _, _ in links}
    return {target for target in targets if target is not None and target.endswith(".md")}


def test_every_page_is_reachable_from_the_index() -> None:
    reached: set[str] = set()
    waiting = {"docs/index.md"}
    while waiting:
        reached |= waiting
        waiting = {target for page in waiting for target in links_from(page)} - reached
    pages = {f"docs/{path.relative_to(ROOT / 'docs')}" for path in (ROOT / "docs").rglob("*.md")}
    assert pages | set(site_hooks.outside_pages()) <= reached


def test_readme_has_at_most_90_lines() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 90


def test_links_are_rewritten_to_places_in_the_site() -> None:
    def rewritten(link: str, source: str) -> str:
        return site_hooks.rewritten(f"[a]({link})", source)[4:-1]

    assert rewritten("docs/flows.md#ids", "ARCHITECTURE.md") == "flows.md#ids"
    assert rewritten("../ARCHITECTURE.md", "docs/index.md") == "architecture.md"
    assert rewritten("../docs/verbs.md", "stretto-fidl/README.md") == "../verbs.md"
    assert rewritten("docs/compiler.md", "stretto-fidl/README.md") == "compiler.md"
    assert rewritten("../../docs/fxt.md", "stretto-fidl/docs/symbolize.md") == "../fxt.md"
    assert rewritten("../README.md", "docs/view.md") == "index.md"
    assert rewritten("../../examples/demo.py", "docs/formats/ipc.md") == "../examples/demo.py"
    assert rewritten("https://perfetto.dev", "docs/index.md") == "https://perfetto.dev"


def test_links_in_code_blocks_are_not_rewritten() -> None:
    text = "```\n[a](../ARCHITECTURE.md)\n```\n"
    assert site_hooks.rewritten(text, "docs/index.md") == text


def test_site_loads_nothing_from_other_servers() -> None:
    assert "font: false" in CONFIG
    assert "http" not in CONFIG
