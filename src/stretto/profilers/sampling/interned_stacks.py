"""The interned data of one process's samples: its functions, files, frames and stacks.

Frames and stacks have the numbers that the sampler gives them; numbers start at 1.

A code object may be freed, and another one get its address. `is_stale` compares known code objects
with those in memory; if it returns True, all numbers have to start again.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from stretto.protos.trace import Callstack, Frame, InternedData, InternedString, Mapping

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stretto.profilers.sampling.objects import CodeName, ObjectReader

_MAX_CHECKED = 256
"""The most code objects that `is_stale` compares."""


class FunctionKey(NamedTuple):
    """The key of a function in the counts of a profile."""

    function: str
    filename: str


class _Code(NamedTuple):
    name: CodeName
    identity: bytes
    function_iid: int
    mapping_iid: int


class InternedStacks:
    """Functions, files, frames and stacks by number.

    Args:
        reader: Reads the names of code objects.
    """

    def __init__(self, reader: ObjectReader) -> None:
        self._reader = reader
        self._codes: dict[int, _Code] = {}
        self._mappings: dict[str, int] = {}
        self._frames: list[FunctionKey] = []
        self.stacks: list[tuple[int, ...]] = []
        """The numbers of each stack's frames, the outermost call first."""
        self._new = InternedData()

    def add_frames(self, frames: Iterable[tuple[int, int]]) -> None:
        """Add frames: (address of the code object, line). Their names are read now."""
        for address, line in frames:
            code = self._codes.get(address) or self._add_code(address)
            self._frames.append(FunctionKey(code.name.function, code.name.filename))
            self._new.frames.append(
                Frame(
                    iid=len(self._frames),
                    function_name_id=code.function_iid,
                    mapping_id=code.mapping_iid,
                    source_path_iid=code.mapping_iid,
                    line_number=line,
                    kind=Frame.Kind.KIND_INTERPRETED,
                )
            )

    def add_stacks(self, stacks: Iterable[tuple[int, ...]]) -> None:
        """Add stacks of frames that were added before."""
        for stack in stacks:
            self.stacks.append(stack)
            self._new.callstacks.append(Callstack(iid=len(self.stacks), frame_ids=stack))

    def take(self) -> InternedData | None:
        """Return what was added since the last call; None if nothing was."""
        new, self._new = self._new, InternedData()
        return new if new.frames or new.callstacks else None

    def functions(self, stack: tuple[int, ...]) -> list[FunctionKey]:
        """Return the functions of a stack, the outermost call first."""
        return [self._frames[number - 1] for number in stack]

    def _add_code(self, address: int) -> _Code:
        name = self._reader.code_name(address)
        function = len(self._codes) + 1
        self._new.function_names.append(InternedString(iid=function, str=name.function.encode()))
        code = _Code(name, self._identity(address), function, self._mapping(name.filename))
        self._codes[address] = code
        return code

    def _mapping(self, filename: str) -> int:
        """Return the number of a file, as a mapping and as a source path."""
        number = self._mappings.get(filename)
        if number is None:
            number = self._mappings[filename] = len(self._mappings) + 1
            path = InternedString(iid=number, str=filename.encode(errors="replace"))
            self._new.mapping_paths.append(path)
            self._new.source_paths.append(path)
            self._new.mappings.append(Mapping(iid=number, path_string_ids=[number]))
        return number

    def _identity(self, address: int) -> bytes:
        try:
            return self._reader.identity(address)
        except OSError:
            return b""

    def is_stale(self) -> bool:
        """Return whether a known code object has changed; each call compares some, in turn."""
        checked = list(islice(self._codes.items(), _MAX_CHECKED))
        for address, code in checked:
            if self._identity(address) != code.identity:
                return True
        if len(checked) < len(self._codes):
            for address, code in checked:  # Move them to the end.
                del self._codes[address]
                self._codes[address] = code
        return False
