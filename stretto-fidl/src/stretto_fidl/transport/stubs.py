"""Makes classes with a function for each method of a protocol.

Each method has a plain function. While the category of a two-way method is recorded, a traced
function replaces the plain function of this method.

    plain      self._call(method, payload, members)
    traced     self._traced_call(method, payload, members)

A payload is passed as an object, or as its members by keywords.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from stretto.base.rpc_hooks import NEVER
from stretto_fidl.bindings.protocols import TWO_WAY
from stretto_fidl.python_names import python_name
from stretto_fidl.transport.described import described

if TYPE_CHECKING:
    from collections.abc import Callable

    from stretto_fidl.bindings.protocols import Method, Protocol

_classes: WeakKeyDictionary[type, WeakKeyDictionary[type[Protocol], type]] = WeakKeyDictionary()


def stub_class(base: type, protocol: type[Protocol], kinds: tuple[str, ...]) -> Any:
    """Return a subclass with a function for each method; the same subclass for equal arguments.

    Args:
        base: A class with `_call` and `_traced_call` for two-way methods, and `_send` for other
            methods.
        protocol: The protocol of the methods.
        kinds: The kinds of methods that get a function.
    """
    classes = _classes.setdefault(base, WeakKeyDictionary())
    found = classes.get(protocol)
    if found is None:
        found = type(f"{protocol.__name__}{base.__name__}", (base,), {"__doc__": protocol.__doc__})
        for method in protocol.METHODS:
            if method.kind in kinds:
                _add(found, protocol, method)
        found = classes.setdefault(protocol, found)
    return found


def _add(cls: type, protocol: type[Protocol], method: Method) -> None:
    name = python_name(method.name)
    name = f"{name}_" if hasattr(cls, name) else name
    if method.kind != TWO_WAY:
        setattr(cls, name, _named(_sending(method), cls, name))
        return
    plain, traced = (_named(stub, cls, name) for stub in (_calling(method), _traced(method)))
    setattr(cls, name, plain)
    switch = described(protocol)[method.ordinal].switch
    if switch is not NEVER:
        there = weakref.ref(cls)

        def swap(enabled: bool) -> None:
            if (target := there()) is not None:
                setattr(target, name, traced if enabled else plain)

        switch.listen(swap)


def _calling(method: Method) -> Callable[..., Any]:
    def stub(self: Any, payload: Any = None, /, **members: Any) -> Any:
        return self._call(method, payload, members)

    return stub


def _traced(method: Method) -> Callable[..., Any]:
    def stub(self: Any, payload: Any = None, /, **members: Any) -> Any:
        return self._traced_call(method, payload, members)

    return stub


def _sending(method: Method) -> Callable[..., Any]:
    def stub(self: Any, payload: Any = None, /, **members: Any) -> Any:
        return self._send(method, payload, members)

    return stub


def _named(stub: Callable[..., Any], cls: type, name: str) -> Callable[..., Any]:
    stub.__name__ = name
    stub.__qualname__ = f"{cls.__name__}.{name}"
    return stub
