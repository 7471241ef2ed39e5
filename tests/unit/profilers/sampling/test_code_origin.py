"""Sampled code has the names and the folding of function slices."""

from __future__ import annotations

import asyncio.runners
import json
import threading
from pathlib import Path

import pytest

from stretto.profilers.sampling import code_origin
from stretto.profilers.sampling.code_origin import body_name, is_folded, module_of


@pytest.mark.parametrize(
    ("filename", "module"),
    [
        (json.__file__, "json"),
        (asyncio.runners.__file__, "asyncio.runners"),
        ("<frozen importlib._bootstrap>", "importlib._bootstrap"),
        ("<string>", ""),
        ("", ""),  # As `compile` takes it.
        ("/x/lib/python3.12/site-packages/google/api/label.py", "google.api.label"),
        ("/srv/not/there.py", "there"),
    ],
)
def test_module_of_a_file(filename: str, module: str) -> None:
    assert module_of(filename) == module


def test_code_whose_file_has_no_name_is_neither_folded_nor_nameless() -> None:
    assert not is_folded("f", "")
    assert body_name("", is_main=True) == body_name("", is_main=False) == "?"


def test_module_in_a_package_has_the_names_of_all_packages(tmp_path: Path) -> None:
    inner = tmp_path / "shop" / "views"
    inner.mkdir(parents=True)
    for folder in (inner, inner.parent):
        (folder / "__init__.py").touch()
    assert module_of(str(inner / "cart.py")) == "shop.views.cart"
    assert body_name(str(inner / "__init__.py"), is_main=False) == "import shop.views"
    assert body_name(str(inner / "cart.py"), is_main=True) == "cart.py"


def test_machinery_and_strettos_own_code_are_folded() -> None:
    assert is_folded("_find_and_load", "<frozen importlib._bootstrap>")
    assert is_folded("Thread._bootstrap", threading.__file__)
    assert is_folded("module_of", code_origin.__file__)
    assert is_folded("_start", "/tmp/stretto-record-304a/site/sitecustomize.py")
    assert not is_folded("Thread.join", threading.__file__)
    assert not is_folded("checkout", "/srv/shop.py")
