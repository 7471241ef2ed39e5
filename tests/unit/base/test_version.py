from __future__ import annotations

import tomllib

import stretto
from stretto.base.version import SDK_VERSION
from tests.support.sources import ROOT


def test_version_equals_the_version_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert stretto.__version__ == project["version"]
    assert f"{project['name']} {project['version']}" == SDK_VERSION
