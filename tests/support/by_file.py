"""A pytest plugin: pytest-xdist gives each process whole files of tests, not single tests.

So fixtures of a module are made once, not once for each process. And the main process stays idle:
the scheduler of pytest-xdist looks at all finished units whenever a test ends, which with
ten thousand units of one test each takes longer than many tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import LoadGroupScheduling


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadGroupScheduling | None:
    """Returns the scheduler for `--dist loadgroup`; files are run in the order of collection.

    That begins with the folders whose tests take longest, and ends with short ones, which keep all
    processes busy until the end.
    """
    if config.option.dist != "loadgroup":
        return None

    from xdist.scheduler import LoadGroupScheduling

    class ByFile(LoadGroupScheduling):
        def _split_scope(self, nodeid: str) -> str:
            """Returns the group of a test, or its file."""
            return super()._split_scope(nodeid).partition("::")[0]

    config.option.loadscopereorder = False
    return ByFile(config, log)
