"""Compresses the trace bytes of a read into one packet.

A config may name several codecs. Of the codecs that this interpreter supports, the one with the
highest field number is used. If there is none, the trace is not compressed.
"""

from __future__ import annotations

import sys

from stretto.service.output.packet_encoder import blob, framed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Final

    from stretto.protos.config import TraceConfig

    Compressor = Callable[[bytes], bytes]
    """Turns framed packets into one framed packet that holds them."""

_COMPRESSED_PACKETS: Final = 50
_ZSTD_COMPRESSED_PACKETS: Final = 133
_COMPRESSION_TYPE_DEFLATE: Final = 1
_DEFLATE_LEVEL: Final = 6
_ZSTD_DEFAULT_LEVEL: Final = 3
_ZSTD_MAX_LEVEL: Final = 22


def make_compressor(config: TraceConfig) -> Compressor | None:
    """Return the compressor that a config requests; None for no compression."""
    compression = config.compression
    if compression is not None and compression.zstd is not None:
        zstd = _zstd(compression.zstd.level)
        if zstd is not None:
            return _packer(_ZSTD_COMPRESSED_PACKETS, zstd)
    if compression is not None and compression.deflate is not None:
        return _packer(_COMPRESSED_PACKETS, _deflate)
    if config.compression_type == _COMPRESSION_TYPE_DEFLATE:
        return _packer(_COMPRESSED_PACKETS, _deflate)
    return None


def _packer(field: int, compress: Compressor) -> Compressor:
    def pack(packets: bytes) -> bytes:
        return framed(blob(field, compress(packets))) if packets else b""

    return pack


def _deflate(data: bytes) -> bytes:
    import zlib

    return zlib.compress(data, _DEFLATE_LEVEL)


def _zstd(level: int) -> Compressor | None:
    level = min(level or _ZSTD_DEFAULT_LEVEL, _ZSTD_MAX_LEVEL)
    builtin = _module("compression.zstd")  # a module of Python 3.14 and later
    if builtin is not None:
        return lambda data: bytes(builtin.compress(data, level))
    installed = _module("zstandard")
    if installed is not None:
        return lambda data: bytes(installed.ZstdCompressor(level=level).compress(data))
    return None


def _module(name: str) -> ModuleType | None:
    try:
        __import__(name)
    except ImportError:
        return None
    return sys.modules[name]
