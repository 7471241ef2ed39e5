"""Hooks of mkdocs that add pages from outside of docs/, and rewrite the links between pages.

The site has pages whose sources lie elsewhere in the repository (ARCHITECTURE.md,
stretto-fidl/docs). The links of every page are relative to the page's source, so the links
work in a checkout and on a code hosting site. The hooks

- add these pages, and each file of the repository that a page links to, to the site;
- rewrite the links to where their targets are in the site.
"""

from __future__ import annotations

import os.path
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]

PAGES = {
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGES.md": "changes.md",
    "README.md": "index.md",
    "stretto-fidl/README.md": "fidl/index.md",
}
"""Sources outside of docs/ with their places in the site. docs/index.md stands for README.md."""
FOLDERS = {"docs/": "", "stretto-fidl/docs/": "fidl/"}

LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
CODE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def site_path(source: str) -> str:
    """Returns the path that a file of the repository has in the site; both paths are relative."""
    if source in PAGES:
        return PAGES[source]
    for folder, place in FOLDERS.items():
        if source.startswith(folder):
            return place + source.removeprefix(folder)
    return source


def outside_pages() -> dict[str, str]:
    """Returns the pages whose sources are outside of docs/, with their paths in the site."""
    fidl = (path.relative_to(ROOT).as_posix() for path in (ROOT / "stretto-fidl/docs").glob("*.md"))
    return {source: site_path(source) for source in [*PAGES, *fidl] if source != "README.md"}


def target_of(source: str, link: str) -> str | None:
    """Returns the file of the repository that a link leads to; None for links to other servers."""
    if re.match(r"[a-z]+:", link):
        return None
    return os.path.normpath(os.path.join(os.path.dirname(source), link))


def rewritten(markdown: str, source: str) -> str:
    """Returns the text of a page in which each link leads to a path in the site."""
    here = os.path.dirname(site_path(source)) or "."

    def place(match: re.Match[str]) -> str:
        target = target_of(source, match[2])
        if target is None:
            return match[0]
        link = os.path.relpath(site_path(target), here)
        return f"{match[1]}{link}{match[3] or ''}{match[4]}"

    code = CODE.findall(markdown)
    prose = [LINK.sub(place, part) for part in CODE.split(markdown)]
    return "".join(a + b for a, b in zip(prose, [*code, ""], strict=True))


def linked_files(sources: list[str]) -> Iterator[str]:
    """Yields the linked files that are not pages: examples, pictures."""
    for source in sources:
        for match in LINK.finditer(CODE.sub("", (ROOT / source).read_text("utf-8"))):
            target = target_of(source, match[2])
            if target is not None and not target.endswith(".md") and (ROOT / target).is_file():
                yield target


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Adds the pages from outside of docs/ and the files that pages link to."""
    from mkdocs.structure.files import File  # the tests of this module run without mkdocs

    added = outside_pages()
    inside = [f"docs/{file.src_uri}" for file in files.documentation_pages()]
    added |= {source: site_path(source) for source in linked_files([*inside, *added])}
    for source, place in added.items():
        if files.get_file_from_path(place) is None:
            path = str(ROOT / source)
            files.append(File.generated(config, place, abs_src_path=path))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrites the links of a page."""
    del config, files
    sources = {place: source for source, place in outside_pages().items()}
    place = page.file.src_uri
    return rewritten(markdown, sources.get(place, f"docs/{place}"))
