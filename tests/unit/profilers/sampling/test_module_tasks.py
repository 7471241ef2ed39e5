"""Tasks are read from memory with any content: what can't be read is left out."""

from __future__ import annotations

import random
import struct
from contextlib import suppress

import pytest

from stretto.profilers.sampling.coroutines import CoroutineReader
from stretto.profilers.sampling.layout import layout_of
from stretto.profilers.sampling.module_tasks import ModuleTasks
from stretto.profilers.sampling.objects import ObjectReader

WORDS = 4096
BASE = 1 << 20
SMALL = 40
LAYOUT = layout_of((3, 12), b"")
TEXTS = b"_asyncio.Task function method functools.partial coroutine _release_waiter".split()


class DamagedMemory(ObjectReader):
    """Memory in which most words are small numbers or addresses in this memory."""

    def __init__(self, seed: int) -> None:
        super().__init__(0, LAYOUT)
        source = random.Random(seed)
        words = [self._word(source) for _ in range(WORDS)]
        self._memory = bytearray(struct.pack(f"<{WORDS}Q", *words))
        for text in TEXTS * 8:
            at = source.randrange(WORDS - 8) * 8
            self._memory[at : at + len(text) + 1] = text + b"\0"
        self.reads = 0

    @staticmethod
    def _word(source: random.Random) -> int:
        kind = source.random()
        if kind < 0.7:
            return BASE + 8 * source.randrange(WORDS)
        return source.randrange(SMALL) if kind < 0.95 else source.getrandbits(64)

    def bytes_at(self, address: int, size: int) -> bytes:
        self.reads += 1
        begin = address - BASE
        if begin < 0 or begin + size > len(self._memory):
            raise OSError("not mapped")
        return bytes(self._memory[begin : begin + size])


def read_all(tasks: ModuleTasks, coroutines: CoroutineReader, address: int) -> None:
    """Read an address as a future, and as a task."""
    with suppress(OSError, ValueError):
        assert len(list(tasks.awaiters(address))) < 1 << 17
    with suppress(OSError, ValueError):
        assert len(list(coroutines.frames(tasks.coroutine(address)))) <= 100


@pytest.mark.parametrize("version", [(3, 11), (3, 12), (3, 13)])
def test_reading_damaged_memory_ends(version: tuple[int, int]) -> None:
    for seed in range(100):
        memory = DamagedMemory(seed)
        tasks = ModuleTasks([BASE + 8 * n for n in range(64)], memory, version)
        coroutines = CoroutineReader(memory, LAYOUT)
        for address in range(BASE, BASE + 1024, 8):
            read_all(tasks, coroutines, address)
        running, found = tasks.find()
        assert len(running) + len(found) < 1 << 17
        assert memory.reads < 1 << 20
