"""Enumerations as classes with integer constants.

Enum values are plain integers, so unknown values of a newer peer are kept.
"""

from __future__ import annotations

from stretto.base.errors import ConfigError

TYPE_CHECKING = False  # Importing `typing` takes longer than importing this module.
if TYPE_CHECKING:
    from typing import ClassVar


class Enum:
    """Base class of all enumerations; never instantiated."""

    VALUES: ClassVar[dict[str, int]]

    @classmethod
    def name_of(cls, value: int) -> str:
        """Return the first name of a value; its decimal digits if it has no name."""
        for name, number in cls.VALUES.items():
            if number == value:
                return name
        return str(value)

    @classmethod
    def value_of(cls, name: str) -> int:
        """Return the value with this name; raise ConfigError if there is none."""
        try:
            return cls.VALUES[name]
        except KeyError:
            known = ", ".join(cls.VALUES)
            raise ConfigError(f"{cls.__qualname__} has no {name!r}; it has {known}") from None
