"""Selects the code that function tracing records, by patterns for modules and paths.

    numpy           the module and its submodules
    app.*_pb2       modules, with the wildcards of a shell
    src/app         a file, or all files in a folder
    **/tests/*      paths, with wildcards; `*` also matches slashes

A pattern with a slash, or one that ends in `.py`, is a path. Code that matches `exclude` is not
traced; if `include` is given, only matching code is traced. Stretto's own code is never traced.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import CodeType

    Matcher = Callable[[str], object]


def _own_folder() -> str:
    """Return Stretto's folder as code objects name it, which may differ from `__file__`."""
    here = _own_folder.__code__.co_filename
    return os.path.dirname(os.path.dirname(here)) + os.sep


def _is_path(pattern: str) -> bool:
    return "/" in pattern or pattern.endswith(".py")


def _glob(pattern: str) -> Matcher:
    import fnmatch
    import re

    return re.compile(fnmatch.translate(pattern)).match


def _within(whole: str, separator: str) -> Matcher:
    below = whole + separator
    return lambda name: name == whole or name.startswith(below)


def _matcher(pattern: str) -> Matcher:
    path = _is_path(pattern)
    wild = any(character in pattern for character in "*?[")
    if path and not pattern.startswith("*"):
        pattern = os.path.abspath(os.path.expanduser(pattern))
    return _glob(pattern) if wild else _within(pattern, os.sep if path else ".")


class _Patterns:
    """A set of patterns for modules and paths."""

    __slots__ = ("_has_paths", "_matchers", "_on_match", "_unmatched", "empty")

    def __init__(self, patterns: Iterable[str], on_match: Callable[[str], object] = id) -> None:
        self._matchers = [(each, _is_path(each), _matcher(each)) for each in patterns]
        self._has_paths = any(is_path for _, is_path, _ in self._matchers)
        self.empty = not self._matchers
        self._unmatched = {each for each, _, _ in self._matchers}
        self._on_match = on_match

    def match(self, path: str, module: str) -> bool:
        if self._has_paths and not path.startswith("<"):
            path = os.path.abspath(path)
        matching = [
            each
            for each, is_path, matches in self._matchers
            if matches(path if is_path else module)
        ]
        for pattern in self._unmatched.intersection(matching):
            self._unmatched.discard(pattern)
            self._on_match(pattern)
        return bool(matching)


class CodeFilter:
    """Decides whether a code object is traced; called once for each code object.

    Args:
        include: patterns of traced code; if empty, all code is traced.
        exclude: patterns of code that is not traced.
        on_match: called once with each pattern of `include` that some code matches.
    """

    def __init__(
        self,
        include: Iterable[str] = (),
        exclude: Iterable[str] = (),
        on_match: Callable[[str], object] = id,
    ) -> None:
        self._include = _Patterns(include, on_match)
        self._exclude = _Patterns(exclude)
        self._own = _own_folder()

    def __call__(self, code: CodeType, module: str | None) -> bool:
        """Return whether calls of `code` in `module` are traced."""
        path, name = code.co_filename, module or ""
        if path.startswith(self._own) or self._exclude.match(path, name):
            return False
        return self._include.empty or self._include.match(path, name)
