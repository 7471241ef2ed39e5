"""Objects that `with` closes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self


class Closing(ABC):
    """An object that holds memory, files or processes until it is closed."""

    @abstractmethod
    def close(self) -> None:
        """Free what the object holds."""

    def __enter__(self) -> Self:
        """Return this object."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close this object."""
        self.close()
