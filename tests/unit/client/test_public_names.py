"""`dir(stretto)` and `help(stretto)` show the public names before their first use."""

from __future__ import annotations

import subprocess
import sys

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


def test_dir_and_help_show_names_that_are_not_loaded_yet() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=60)
