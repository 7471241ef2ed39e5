"""Built-in categories whose names the program has used before Stretto creates them."""

from __future__ import annotations

import subprocess
import sys

FIRST_MADE_BY_THE_PROGRAM = """
from stretto import _native
mine = _native.Category("python.gc")
from stretto.client.track_event import builtin_categories, slots
builtin_categories.announce()
builtin_categories.announce()
assert mine is _native.Category("python.gc")
assert mine.tags == ("slow",), mine.tags
assert mine.description == "runs of the garbage collector", mine.description
assert len(slots._observers[mine]) == 1
slots.enable(0, None)
assert not mine.enabled
"""


def test_existing_category_gets_the_builtin_tags_and_provider() -> None:
    command = [sys.executable, "-c", FIRST_MADE_BY_THE_PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
