"""Describes the arguments and results of recorded calls (`--log-args`, `--log-result`).

Only exact built-in types are shown by value. Any other object is shown by its type, as
`<shop.Cart>`: no method or property of the program's objects is called, which could raise, block,
recurse or record. Values whose names sound like secrets are left out.
"""

from __future__ import annotations

from itertools import islice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import CodeType
    from typing import Any

MAX_ARGUMENTS = 16
MAX_ITEMS = 6
"""The largest number of items of a container that are shown."""
MAX_DEPTH = 2
"""The depth of containers; deeper ones are shown by their type."""
MAX_TEXT = 200
"""The length of a value's text, in characters."""
_MAX_BITS = 256
"""The size of integers; the text of a larger one would take long."""

_SECRETS = ("passw", "passphrase", "pwd", "secret", "token", "credential", "auth", "cookie", "key")
HIDDEN = "<left out>"

_module_of = type.__dict__["__module__"].__get__
_name_of = type.__dict__["__qualname__"].__get__
"""The program may define other attributes of these names in a metaclass."""


def is_secret(name: str) -> bool:
    """Whether a value of this name may be secret: `password`, `api_key`, `authorization`."""
    lower = name.lower()
    return any(word in lower for word in _SECRETS)


def _type_text(kind: type) -> str:
    module = _module_of(kind)
    prefix = f"{module}." if type(module) is str and module not in ("builtins", "__main__") else ""
    return f"<{prefix}{_name_of(kind)}>"


def _joined(texts: Iterable[str], count: int) -> str:
    more = ", …" if count > MAX_ITEMS else ""
    return ", ".join(islice(texts, MAX_ITEMS)) + more


def _entry(key: object, value: Any, depth: int) -> str:
    hidden = type(key) is str and is_secret(key)
    return f"{_text(key, depth)}: {HIDDEN if hidden else _text(value, depth)}"


def _container_text(value: Any, depth: int) -> str:
    if type(value) is dict:
        entries = (
            _entry(key, item, depth - 1) for key, item in list(islice(value.items(), MAX_ITEMS))
        )
        return f"{{{_joined(entries, len(value))}}}"
    for kind, opening, closing in ((list, "[", "]"), (tuple, "(", ")"), (set, "{", "}")):
        if type(value) is kind:
            items = (_text(item, depth - 1) for item in list(islice(value, MAX_ITEMS)))
            return f"{opening}{_joined(items, len(value))}{closing}"
    return _type_text(type(value))


def _text(value: Any, depth: int = MAX_DEPTH) -> str:
    kind = type(value)
    if kind is str or kind is bytes:
        return f"{value[:MAX_TEXT]!r}{'…' * (len(value) > MAX_TEXT)}"
    if kind is int:
        bits = value.bit_length()
        return repr(value) if bits <= _MAX_BITS else f"<int of {bits} bits>"
    if value is None or kind in (bool, float, complex):
        return repr(value)
    return _container_text(value, depth) if depth else _type_text(kind)


def _described(name: str, value: Any) -> object:
    if is_secret(name):
        return HIDDEN
    if type(value) in (bool, float) or (type(value) is int and value.bit_length() < 64):
        return value
    text = value if type(value) is str else _text(value)
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"


def arguments_of(code: CodeType, values: tuple[Any, ...]) -> dict[str, object]:
    """Return the arguments of a call by their names, without `self` and `cls`."""
    named = zip(code.co_varnames, values, strict=False)
    shown = ((name, value) for name, value in named if name not in ("self", "cls"))
    return {name: _described(name, value) for name, value in islice(shown, MAX_ARGUMENTS)}


def result_of(code: CodeType, value: Any) -> dict[str, object]:
    """Return the result of a call; that of a function like `get_token` is left out."""
    return {"result": _described(code.co_name, value)}
