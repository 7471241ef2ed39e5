"""Python classes for the definitions of FIDL libraries.

`load` makes the classes from the compiler's IR; `stretto_fidl.bindings.generator` writes
modules with the same classes. Values are encoded and decoded by
`stretto_fidl.codec`.
"""

from __future__ import annotations

from stretto_fidl.bindings.loader import Namespace, load
from stretto_fidl.bindings.numbers import Bits, Enum, FrameworkError
from stretto_fidl.bindings.objects import ChannelEnd, Event, Vmo, adopt, channel
from stretto_fidl.bindings.printing import redacted
from stretto_fidl.bindings.protocols import EVENT, ONE_WAY, TWO_WAY, Method, Protocol, Service
from stretto_fidl.bindings.records import Struct, Table, Union
from stretto_fidl.codec.handle import Handle

__all__ = [
    "load",
    "Namespace",
    "Struct",
    "Table",
    "Union",
    "Enum",
    "Bits",
    "FrameworkError",
    "Protocol",
    "Service",
    "Method",
    "ONE_WAY",
    "TWO_WAY",
    "EVENT",
    "Handle",
    "ChannelEnd",
    "channel",
    "Vmo",
    "Event",
    "adopt",
    "redacted",
]
