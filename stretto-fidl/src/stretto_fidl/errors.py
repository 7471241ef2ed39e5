"""The errors of FIDL. `FidlError` is the base class of all other errors."""

from __future__ import annotations

from stretto.base.errors import StrettoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class FidlError(StrettoError):
    """Base class of the errors of `stretto_fidl`."""


MAX_SHOWN = 20
"""The maximum number of errors in the text of a `CompileError`."""


class CompileError(FidlError, ValueError):
    """A definition is wrong.

    The text is like a compiler's: the place, what is wrong and what to do, the
    line, and a caret under the place. Where several definitions are wrong, the
    text has all of them, and the attributes belong to the first.

    Attributes:
        reason: What is wrong, without the place.
        filename: The file; "" where no file is at fault.
        line: The number of the line, from 1; 0 where no file is at fault.
        column: The column in characters, from 1; 0 where no file is at fault.
        source_line: The line's text.
        errors: All errors of the run, beginning with this error.
    """

    def __init__(
        self, reason: str, filename: str = "", line: int = 0, column: int = 0, source_line: str = ""
    ) -> None:
        self.reason = reason
        self.filename = filename
        self.line = line
        self.column = column
        self.source_line = source_line
        self.errors: Sequence[CompileError] = (self,)
        super().__init__(self.text())

    def at(self, reason: str) -> CompileError:
        """Return an error at the same place, with another reason."""
        return CompileError(reason, self.filename, self.line, self.column, self.source_line)

    def text(self) -> str:
        """Return the text of this error alone, without the other errors in `errors`."""
        if not self.filename:
            return self.reason
        # Keep a tab as a tab, so that the caret stands under its character.
        lead = "".join(c if c == "\t" else " " for c in self.source_line[: self.column - 1])
        place = f"{self.filename}:{self.line}:{self.column}: {self.reason}"
        return f"{place}\n{self.source_line}\n{lead}^"

    def __str__(self) -> str:
        texts = [error.text() for error in self.errors[:MAX_SHOWN]]
        if len(self.errors) > MAX_SHOWN:
            texts.append(f"… and {len(self.errors) - MAX_SHOWN} more errors")
        return "\n".join(texts)
