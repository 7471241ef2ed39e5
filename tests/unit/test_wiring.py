"""What is registered when `stretto._wiring` is imported, and when its `install` is called."""

from __future__ import annotations

import subprocess
import sys


def output_of(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=True
    )
    return done.stdout.strip()


def test_import_registers_no_backends_hooks_or_categories() -> None:
    code = """
import os
hooks = []
os.register_at_fork = lambda **each: hooks.append(each)
from stretto.client import data_source
from stretto.client.backend import factories
hooks.clear()
from stretto import _native, _wiring
print(factories.backends, factories.session_backends, data_source.registered, hooks)
print([category.name for category in _native.categories()])
"""
    assert output_of(code) == "{} {} {} []\n['python']"


def test_second_install_registers_no_second_hook_or_category() -> None:
    code = """
import os
hooks = []
os.register_at_fork = lambda **each: hooks.append(each)
from stretto import _native, _wiring
from stretto.client import data_source
from stretto.client.backend import factories
_wiring.install()
before = len(hooks), sorted(each.name for each in _native.categories())
_wiring.install()
after = len(hooks), sorted(each.name for each in _native.categories())
print(before == after, sorted(factories.session_backends), list(data_source.registered))
"""
    assert output_of(code) == "True ['in_process', 'system'] ['track_event']"


def test_installing_the_wiring_does_not_import_backends() -> None:
    code = """
import sys
from stretto import _wiring
_wiring.install()
print([name for name in sys.modules if name.startswith(("stretto.backends", "stretto.service"))])
"""
    assert output_of(code) == "[]"


def test_unknown_attribute_raises_attribute_error() -> None:
    code = """
import stretto
try:
    stretto.install
except AttributeError as error:
    print(error)
"""
    assert output_of(code) == "module 'stretto' has no attribute 'install'"


def test_first_session_leaves_the_collector_and_frozen_objects_as_they_were() -> None:
    code = """
import gc, os, stretto
objects = [[] for _ in range(5000)]
for enabled, freeze in ((True, False), (False, True)):
    (gc.enable if enabled else gc.disable)()
    if freeze:
        gc.freeze()
    before = gc.get_freeze_count()
    if os.fork() == 0:
        with stretto.recording("/dev/null"):
            pass
        after = gc.get_freeze_count()
        os._exit(gc.isenabled() is not enabled or (freeze and after != before))
    print(os.waitstatus_to_exitcode(os.wait()[1]))
"""
    assert output_of(code) == "0\n0"
