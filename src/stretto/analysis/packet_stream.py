"""The packets of a file as messages, in their order; compressed packets are decompressed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.analysis.track_events import inflated
from stretto.base.errors import DecodeError
from stretto.base.sync_marker import SYNC_MARKER
from stretto.protos.trace import TracePacket
from stretto.protozero.tokenizer import Tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

_READ_BYTES = 1 << 20


class PacketStream:
    """An iterable over the packets of a trace, for one iteration.

    Args:
        file: The trace, opened for reading bytes.

    Attributes:
        damaged: The number of unreadable packets and file areas.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.damaged = 0

    def __iter__(self) -> Iterator[TracePacket]:
        """Iterate over the packets."""
        tokens: Tokenizer[bytes] = Tokenizer(marker=SYNC_MARKER)
        while piece := self._file.read(_READ_BYTES):
            yield from self._packets(tokens.append(piece), packed=True)
        yield from self._packets(tokens.end(), packed=True)
        self.damaged += tokens.errors

    def _packets(self, encoded: Iterable[bytes], *, packed: bool) -> Iterator[TracePacket]:
        """Decode packets. Compressed packets inside of compressed packets are not decompressed."""
        for data in encoded:
            try:
                packet = TracePacket.decode(data)
                if packed and packet.has("compressed_packets"):
                    inner: Tokenizer[bytes] = Tokenizer()
                    yield from self._packets(
                        inner.append(inflated(bytes(packet.compressed_packets))), packed=False
                    )
                    self.damaged += inner.errors
                    continue
            except DecodeError:
                self.damaged += 1
                continue
            yield packet
