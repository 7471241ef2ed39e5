"""The interned data of `linux.perf`: functions, files, frames and stacks.

    address ──> mapping, rel_pc, function ──> key ──> number of the frame (`PerfSampler.add_frame`)

Addresses with the same mapping, rel_pc and function are one frame. Frames of the kernel belong to
the mapping `kernel`, and have no rel_pc, as in traces of Perfetto's `traced_perf`.
"""

from __future__ import annotations

from stretto.protos.trace import Callstack, Frame, InternedData, InternedString
from stretto.protos.trace import Mapping as MappingMessage
from stretto.protozero.wire import bytes_field, varint_field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stretto import _native
    from stretto.probes.perf_mappings import AddressSpaces, Mapping

KERNEL_SPACE = 0
MAX_FRAMES = 1 << 17
"""With more frames or stacks, all start anew."""
FRAMES, MAPPINGS, STACKS, FUNCTIONS, PATHS, BUILD_IDS = (
    InternedData.LAYOUT.field(name).number
    for name in (
        "frames",
        "mappings",
        "callstacks",
        "function_names",
        "mapping_paths",
        "build_ids",
    )
)
FRAME_IID, FRAME_FUNCTION, FRAME_MAPPING, FRAME_REL_PC = (
    Frame.LAYOUT.field(name).number for name in ("iid", "function_name_id", "mapping_id", "rel_pc")
)
STRING_IID, STRING = (InternedString.LAYOUT.field(name).number for name in ("iid", "str"))
STACK_IID, STACK_FRAMES = (Callstack.LAYOUT.field(name).number for name in ("iid", "frame_ids"))


class Frames:
    """Names the frames of a session.

    Args:
        sampler: Numbers frames and stacks.
        spaces: The mappings of the processes.
        kernel: The functions of the kernel; None if there are no frames of the kernel.
    """

    def __init__(
        self,
        sampler: _native.PerfSampler,
        spaces: AddressSpaces,
        kernel: _native.KernelSymbols | None,
    ) -> None:
        self._sampler = sampler
        self._spaces = spaces
        self._kernel = kernel
        self._forget()

    def _forget(self) -> None:
        self._strings: dict[tuple[int, bytes], int] = {}
        self._mappings: dict[tuple[object, ...], int] = {}
        self._keys: dict[tuple[int, int, int], int] = {}
        self._stacks = 0
        self._new: list[bytes] = []

    def clear(self) -> None:
        """Start anew: the incremental state of the sequence has been cleared."""
        self._sampler.clear()
        self._forget()

    def is_full(self) -> bool:
        """Return whether it is time to start anew."""
        stats = self._sampler.stats()
        return max(stats["frames"], stats["stacks"]) > MAX_FRAMES

    def add(self, pid: int, addresses: Iterable[tuple[int, int]]) -> None:
        """Number the frames of addresses, each of which is (space, address)."""
        for space, address in addresses:
            if space == KERNEL_SPACE:
                frame = self._kernel_frame(address)
            else:
                frame = self._user_frame(pid, address)
            known = self._keys.get(frame)
            key = len(self._keys) + 1 if known is None else known
            number = self._sampler.add_frame(space, address, key)
            if known is None and number:
                self._keys[frame] = key
                self._add_frame(number, frame)

    def take(self, stacks: Sequence[tuple[int, ...]]) -> bytes:
        """Return the InternedData since the last call, with these new stacks; empty if none."""
        new, self._new = self._new, []
        for stack in stacks:
            self._stacks += 1
            frames = b"".join(varint_field(STACK_FRAMES, number) for number in stack)
            new.append(bytes_field(STACKS, varint_field(STACK_IID, self._stacks) + frames))
        return b"".join(new)

    # --- frames: (mapping, rel_pc, function) by number

    def _kernel_frame(self, address: int) -> tuple[int, int, int]:
        name = self._kernel.symbol(address) if self._kernel is not None else None
        # Without a name the address tells frames apart.
        return self._mapping("kernel"), 0 if name else address, self._function(name)

    def _user_frame(self, pid: int, address: int) -> tuple[int, int, int]:
        mapping = self._spaces.find(pid, address)
        if mapping is None:
            return self._mapping("unknown"), 0, 0  # The program doesn't keep frame pointers.
        rel_pc, name = address - mapping.start + mapping.offset, None
        if mapping.elf is not None:
            rel_pc = mapping.elf.address(rel_pc)
            name = mapping.elf.symbol(rel_pc)
        return self._mapping(mapping), rel_pc, self._function(name)

    def _add_frame(self, number: int, frame: tuple[int, int, int]) -> None:
        mapping, rel_pc, function = frame
        message = varint_field(FRAME_IID, number) + varint_field(FRAME_MAPPING, mapping)
        message += varint_field(FRAME_REL_PC, rel_pc)
        if function:
            message += varint_field(FRAME_FUNCTION, function)
        self._new.append(bytes_field(FRAMES, message))

    def _function(self, name: bytes | None) -> int:
        return self._string(FUNCTIONS, name) if name else 0

    def _string(self, table: int, text: bytes) -> int:
        """Return the number of a string in a table of InternedData."""
        number = self._strings.get((table, text))
        if number is None:
            number = self._strings[table, text] = len(self._strings) + 1
            message = varint_field(STRING_IID, number) + bytes_field(STRING, text)
            self._new.append(bytes_field(table, message))
        return number

    def _mapping(self, mapping: Mapping | str) -> int:
        """Return the number of a mapping, or of a name without a file."""
        if isinstance(mapping, str):
            key: tuple[object, ...] = (mapping,)
        else:
            build_id = mapping.elf.build_id if mapping.elf is not None else b""
            key = (mapping.path, mapping.start, mapping.end, mapping.offset, build_id)
        number = self._mappings.get(key)
        if number is None:
            number = self._mappings[key] = len(self._mappings) + 1
            message = MappingMessage(iid=number)
            self._describe(message, mapping)
            self._new.append(bytes_field(MAPPINGS, message.encode()))
        return number

    def _describe(self, message: MappingMessage, mapping: Mapping | str) -> None:
        if isinstance(mapping, str):
            message.path_string_ids = [self._string(PATHS, mapping.encode())]
            return
        message.exact_offset = mapping.offset
        message.start, message.end = mapping.start, mapping.end
        if mapping.elf is not None:
            message.load_bias = mapping.elf.load_bias
            if mapping.elf.build_id:
                message.build_id = self._string(BUILD_IDS, mapping.elf.build_id)
        parts = [part for part in mapping.path.split(b"/") if part] or [b"anonymous"]
        message.path_string_ids = [self._string(PATHS, part) for part in parts]
