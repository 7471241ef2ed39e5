"""The former name of the package `stretto_fidl`, which the distribution stretto-fidl installs.

`stretto.fidl` is the module `stretto_fidl`, and `stretto.fidl.codec` is the module
`stretto_fidl.codec`: one set of modules and classes under two names. `stretto_fidl` is not loaded
before this module is imported. New code imports `stretto_fidl`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from importlib.util import find_spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

PACKAGE = "stretto_fidl"
_PREFIX = f"{__name__}."


class _AliasFinder:
    """Finds `stretto.fidl.NAME` as an alias of the module `stretto_fidl.NAME`."""

    @staticmethod
    def find_spec(
        name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not name.startswith(_PREFIX):
            return None
        found = find_spec(f"{PACKAGE}.{name.removeprefix(_PREFIX)}")
        return None if found is None else ModuleSpec(name, _AliasLoader(found.name))


class _AliasLoader(Loader):
    """Loads a module of `stretto.fidl`: the module object is that of `stretto_fidl`.

    Args:
        name: The module's name in `stretto_fidl`.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(self._name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The module has been executed before. The import system has just set the alias's spec.
        module.__spec__ = self._spec


if find_spec(PACKAGE) is None:
    raise ModuleNotFoundError(
        "stretto.fidl is a distribution of its own: run `pip install stretto-fidl`, and import "
        f"{PACKAGE}.",
        name=PACKAGE,
    )
# The finder must precede the path finder, which would load a second copy.
sys.meta_path.insert(0, _AliasFinder)
sys.modules[__name__] = import_module(PACKAGE)
