"""`dir(stretto)` and `help(stretto)` show the public names before their first use."""

from __future__ import annotations

import pydoc
import subprocess
import sys

import stretto

PROGRAM = """
import stretto
assert set(stretto.__all__) <= set(dir(stretto)), dir(stretto)
assert "recording" not in vars(stretto)
import pydoc
text = pydoc.plain(pydoc.render_doc(stretto))
for name in stretto.__all__:
    assert name in text, name
assert "Record this program while a block runs" in text
"""
SUBPACKAGES = """
import sys
import stretto
public = {name for name in dir(stretto) if not name.startswith("__")}
assert public == {*stretto.__all__, "analysis", "flows", "testing"}, public
assert "stretto.flows" not in sys.modules
assert callable(stretto.flows.install)
sys.modules["stretto.testing"] = None  # Importing it fails.
assert not hasattr(stretto, "testing")
"""


def test_dir_and_help_show_names_that_are_not_loaded_yet() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=60)


def test_dir_has_public_names_only_and_subpackages_are_imported_at_first_use() -> None:
    subprocess.run([sys.executable, "-c", SUBPACKAGES], check=True, timeout=60)


def test_help_of_category_shows_public_methods_only() -> None:
    methods = {name for name in dir(stretto.Category) if not name.startswith("_")}
    assert methods == {
        "begin", "counter", "description", "enabled", "end", "instant", "log_message", "name",
        "slice", "tags", "template", "traced",
    }  # fmt: skip
    text = pydoc.plain(pydoc.render_doc(stretto.Category))
    assert "baseline" not in text
    assert "_set_slot" not in text
