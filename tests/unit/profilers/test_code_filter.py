"""CodeFilter selects code by patterns of module names and paths."""

from __future__ import annotations

from types import CodeType

import pytest

import stretto
from stretto.profilers.code_filter import CodeFilter


def code(path: str) -> CodeType:
    compiled = compile("", path, "exec")
    assert compiled.co_filename == path
    return compiled


class TestCodeFilter:
    @pytest.mark.parametrize(
        ("pattern", "module", "path", "matches"),
        [
            ("numpy", "numpy", "/lib/numpy/__init__.py", True),
            ("numpy", "numpy.linalg", "/lib/numpy/linalg.py", True),
            ("numpy", "numpyro", "/lib/numpyro.py", False),
            ("app.*_pb2", "app.wire_pb2", "/app/wire_pb2.py", True),
            ("app.*_pb2", "app.wire", "/app/wire.py", False),
            ("/src/app", "x", "/src/app/a.py", True),
            ("/src/app", "x", "/src/app", True),
            ("/src/app", "x", "/src/application/a.py", False),
            ("/src/app/", "x", "/src/app/a.py", True),
            ("/src/../src/app", "x", "/src/app/a.py", True),
            ("/src/*/a.py", "x", "/src/app/a.py", True),
            ("*/tests/*", "x", "/src/tests/deep/a.py", True),
            ("*/tests/*", "x", "/src/app/a.py", False),
            ("a.py", "a", "/elsewhere/a.py", False),
            ("*/a.py", "a", "/elsewhere/a.py", True),
            ("/src", "x", "<frozen importlib._bootstrap>", False),
            ("x", None, "/src/a.py", False),
        ],
    )
    def test_pattern_matches_modules_or_paths(
        self, pattern: str, module: str | None, path: str, matches: bool
    ) -> None:
        assert CodeFilter(include=[pattern])(code(path), module) is matches
        assert CodeFilter(exclude=[pattern])(code(path), module) is not matches

    def test_relative_paths_are_resolved_from_the_working_directory(
        self, tmp_path: object, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(str(tmp_path))
        accepts = CodeFilter(include=["./app"])
        assert accepts(code(f"{tmp_path}/app/a.py"), "a")
        assert accepts(code("app/a.py"), "a")
        assert not accepts(code("/app/a.py"), "a")

    def test_all_code_is_accepted_by_default(self) -> None:
        assert CodeFilter()(code("/src/a.py"), "a")
        assert CodeFilter()(code("<string>"), None)

    def test_excluding_pattern_overrides_including_pattern(self) -> None:
        accepts = CodeFilter(include=["app"], exclude=["app.slow"])
        assert accepts(code("/a.py"), "app.fast")
        assert not accepts(code("/a.py"), "app.slow")
        assert not accepts(code("/a.py"), "other")

    def test_code_of_stretto_is_not_accepted(self) -> None:
        own = stretto.Category.traced
        assert own is not None
        accepts = CodeFilter(include=["stretto"])
        assert not accepts(CodeFilter.__call__.__code__, "stretto.profilers.code_filter")


def test_each_include_pattern_is_reported_at_its_first_match() -> None:
    matched: list[str] = []
    accepts = CodeFilter(["app", "app.db", "/src/app", "/lib"], on_match=matched.append)
    assert accepts(code("/src/app/db.py"), "app.db")
    assert accepts(code("/src/app/db.py"), "app.db")
    assert sorted(matched) == ["/src/app", "app", "app.db"]
