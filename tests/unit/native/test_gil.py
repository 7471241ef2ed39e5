"""The extensions need the GIL, which a free-threaded CPython enables when it imports them."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
sys._is_gil_enabled = lambda: False
try:
    import stretto._native
except ImportError as error:
    print(error)
import stretto
with stretto.slice("ignored"):
    print(stretto.available())
"""


def test_without_the_gil_stretto_records_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines() == [
        "stretto._native needs the GIL; start Python without PYTHON_GIL=0 and -X gil=0",
        "False",
    ], done.stderr
