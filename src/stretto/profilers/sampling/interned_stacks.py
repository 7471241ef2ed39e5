"""The interned data of one process's samples: its functions, files, frames and stacks.

Frames and stacks have the numbers that the sampler gives them; numbers start at 1.

A frame whose line is `NATIVE` is a C function, which remains as it is. The others:
names and stacks are those of function slices: the machinery of imports and threads is left out of
the stacks, functions have their module, `shop.views.quote`, those of the script excepted, and the
body of a module is `import shop.views`, or the script's name.

A code object may be freed, and another one get its address. `is_stale` compares known code objects
with those in memory; if it returns True, all numbers have to start again.
"""

from __future__ import annotations

from collections import namedtuple
from itertools import islice, pairwise

from stretto.profilers.sampling.code_origin import (
    body_name,
    function_name,
    is_body,
    is_folded,
    is_spawner,
    runs_scripts,
)
from stretto.profilers.sampling.objects import CodeName
from stretto.protos.trace import Callstack, Frame, InternedData, InternedString, Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Protocol

    from stretto.profilers.sampling.native_code import NativeFrame

    class CodeReader(Protocol):
        """Reads the names of code objects, by their addresses or other numbers."""

        def code_name(self, address: int, /) -> CodeName: ...

        def identity(self, address: int, /) -> bytes: ...

    class FunctionReader(Protocol):
        """Reads the names of C functions, by their addresses."""

        def frame(self, address: int, /) -> NativeFrame: ...


NATIVE = -1
"""The line of a C function (ST_NATIVE_LINE of native/probes/stack_table.h)."""

_MAX_CHECKED = 256
"""The most code objects that `is_stale` compares."""


_FunctionKey = namedtuple("_FunctionKey", ("function", "filename", "line"), defaults=(0,))  # noqa: PYI024 - loads no typing


class FunctionKey(_FunctionKey):
    """The key of a function in the counts of a profile."""

    __slots__ = ()

    function: str
    filename: str
    line: int
    """Its first line; 0 if it isn't known."""


class _Code:
    """A code object. Its name is known when the first stack with it has been added.

    Attributes:
        key: its name; that of the code object until `name` is called.
    """

    __slots__ = (
        "filename", "folded", "function", "identity", "is_body", "is_main", "is_native", "key",
        "line", "number",
    )  # fmt: skip

    def __init__(self, name: CodeName, identity: bytes, number: int, *, is_native: bool) -> None:
        self.function, self.filename, self.line = name
        self.key = FunctionKey(*name)
        self.identity = identity
        self.number = number
        self.is_body = is_body(name.function, name.filename)
        self.folded = not is_native and is_folded(name.function, name.filename)
        self.is_native = is_native
        self.is_main = False

    def name(self, scripts: set[str]) -> None:
        """Give the code its final name; `scripts` are the files of scripts."""
        if self.is_native:
            return
        if self.is_body:
            shown = body_name(self.filename, is_main=self.is_main)
        else:
            is_main = self.filename in scripts
            shown = function_name(self.function, self.filename, is_main=is_main)
        self.key = FunctionKey(shown, self.filename, self.line)


class InternedStacks:
    """Functions, files, frames and stacks by number.

    Args:
        reader: Reads the names of code objects.
        scripts: The files of scripts, whose functions have no module; those of the stacks are
            added. Several processes may share the set.
        functions: Reads the names of C functions, if there are any.
    """

    def __init__(
        self,
        reader: CodeReader,
        scripts: set[str] | None = None,
        functions: FunctionReader | None = None,
    ) -> None:
        self._reader = reader
        self._functions = functions
        self._scripts = set() if scripts is None else scripts
        self._codes: dict[int, _Code] = {}
        self._mappings: dict[str, int] = {}
        self._frames: list[_Code] = []
        self._unnamed: list[_Code] = []
        self.stacks: list[tuple[int, ...]] = []
        """The numbers of each stack's frames, the outermost call first."""
        self._new = InternedData()

    def add_frames(self, frames: Iterable[tuple[int, int]]) -> None:
        """Add frames: (address of the code object, line). Their names are read now."""
        for address, line in frames:
            self.add_frame(address, line)

    def add_frame(self, address: int, line: int, place: int | None = None) -> None:
        """Add a frame. Its names are read now.

        Args:
            address: the address of the code object, or of the C function.
            line: the line in the file, or `NATIVE`.
            place: a number that only this frame of the function has, as `rel_pc`. Old trace
                processors don't read lines: without it, frames of one function are the same.
        """
        is_native = line == NATIVE
        code = self._codes.get(address) or self._add_code(address, is_native=is_native)
        self._frames.append(code)
        mapping = self._mapping(code.filename)
        self._new.frames.append(
            Frame(
                iid=len(self._frames),
                function_name_id=code.number,
                mapping_id=mapping,
                rel_pc=place,
                source_path_iid=mapping,
                line_number=None if is_native else line,
                kind=Frame.Kind.KIND_NATIVE if is_native else Frame.Kind.KIND_INTERPRETED,
            )
        )

    def add_stacks(self, stacks: Iterable[tuple[int, ...]]) -> None:
        """Add stacks of frames that were added before."""
        for stack in stacks:
            self.add_shown(self.unfolded(stack))

    def add_shown(self, stack: tuple[int, ...]) -> int:
        """Add a stack as it is; return its number."""
        self.stacks.append(stack)
        self._new.callstacks.append(Callstack(iid=len(self.stacks), frame_ids=stack))
        return len(self.stacks)

    def unfolded(self, stack: tuple[int, ...]) -> tuple[int, ...]:
        """Return the stack without machinery, if anything remains."""
        codes = [self._frames[number - 1] for number in stack]
        calls = [code for code in codes if not code.is_native]
        if len(calls) > 1 and calls[0].filename == "<string>" and is_spawner(calls[1].filename):
            calls[0].folded = True
        for caller, code in pairwise([None, *calls]):
            if code is not None and (caller is None or runs_scripts(caller.filename)):
                code.is_main = code.is_body
                if code.is_main:
                    self._scripts.add(code.filename)
        shown = tuple(n for n, code in zip(stack, codes, strict=True) if not code.folded)
        return shown or stack[-1:]

    def take(self) -> InternedData | None:
        """Return what was added since the last call; None if nothing was."""
        new, self._new = self._new, InternedData()
        for code in self._unnamed:
            code.name(self._scripts)
        new.function_names = [
            InternedString(iid=code.number, str=code.key.function.encode())
            for code in self._unnamed
        ]
        self._unnamed = []
        return new if new.frames or new.callstacks else None

    def functions(self, stack: tuple[int, ...]) -> list[FunctionKey]:
        """Return the functions of a stack, the outermost call first."""
        return [self._frames[number - 1].key for number in stack]

    def _add_code(self, address: int, *, is_native: bool) -> _Code:
        name = self._name(address, is_native=is_native)
        number = len(self._codes) + 1
        code = _Code(name, self._identity(address), number, is_native=is_native)
        self._unnamed.append(code)
        self._codes[address] = code
        return code

    def _name(self, address: int, *, is_native: bool) -> CodeName:
        if is_native and self._functions is not None:
            return CodeName(*self._functions.frame(address), 0)
        return self._reader.code_name(address)

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
