"""native/importer/python3.def lists what the extension _importer uses of CPython.

Only the wheel for Windows is linked with that list, so a name that is missing would be found late.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CMAKE = (ROOT / "native/importer.cmake").read_text()
LIMITED_API = "Py_LIMITED_API=0x030B0000"

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(
        not (shutil.which("cc") and shutil.which("nm")), reason="no C compiler, or no nm"
    ),
]


def used_names(folder: Path) -> set[str]:
    """Compile the sources of the extension, and return the names that they take from CPython."""
    sources = re.findall(r"^  (native/\S+\.c)\)?$", CMAKE, re.MULTILINE)
    assert "native/importer/module.c" in sources
    include = sysconfig.get_path("include")
    options = ["-c", "-O2", "-fPIC", f"-D{LIMITED_API}", f"-I{ROOT}/native", f"-isystem{include}"]
    paths = [str(ROOT / each) for each in sources]
    subprocess.run(["cc", *options, *paths], cwd=folder, check=True)
    listing = subprocess.run(
        ["nm", "--undefined-only", *folder.glob("*.o")], capture_output=True, text=True, check=True
    )
    return set(re.findall(r"\bU (_?Py\w+)", listing.stdout))


def test_each_used_name_is_listed(tmp_path: Path) -> None:
    assert LIMITED_API in CMAKE
    definition = (ROOT / "native/importer/python3.def").read_text()
    listed = set(re.findall(r"^  (\w+)", definition, re.MULTILINE))
    assert used_names(tmp_path) <= listed
