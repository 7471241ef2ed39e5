from __future__ import annotations

import tomllib

import stretto
from stretto.base.version import SDK_VERSION
from tests.support.sources import ROOT


def test_version_attribute_equals_the_version_in_pyproject() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert stretto.__version__ == project["version"]
    assert f"{project['name']} {project['version']}" == SDK_VERSION
