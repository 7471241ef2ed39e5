"""Enumerations as classes of integer constants.

Values stay plain integers, so one that a newer peer sends survives unchanged.
"""

from __future__ import annotations

from stretto.base.errors import ConfigError

TYPE_CHECKING = False  # `typing` costs more to import than everything here
if TYPE_CHECKING:
    from typing import ClassVar


class Enum:
    """Root of all enumerations; never instantiated."""

    VALUES: ClassVar[dict[str, int]]

    @classmethod
    def name_of(cls, value: int) -> str:
        """The first name of a value; its digits if it has none."""
        for name, number in cls.VALUES.items():
            if number == value:
                return name
        return str(value)

    @classmethod
    def value_of(cls, name: str) -> int:
        """The value of a name; raises ConfigError if there is none such."""
        try:
            return cls.VALUES[name]
        except KeyError:
            known = ", ".join(cls.VALUES)
            raise ConfigError(f"{cls.__qualname__} has no {name!r}; it has {known}") from None
