"""Packets are compressed for consumers and for files."""

from __future__ import annotations

import zlib
from types import ModuleType

import pytest

from stretto.protos.config import TraceConfig
from stretto.service.output import compressor
from stretto.testing.decoded_packets import decode_packets
from tests.support.service_setup import Setup, kinds, make_config, texts

Compression = TraceConfig.CompressionConfig
DEFLATE = Compression(deflate=Compression.Deflate())
ZSTD = Compression(zstd=Compression.Zstd(level=9))


class FakeZstd(ModuleType):
    """A stand-in for `compression.zstd` that records the levels used."""

    def __init__(self):
        super().__init__("zstd")
        self.levels = []

    def compress(self, data, level):
        self.levels.append(level)
        return b"Z" + data


def modules(monkeypatch, **present):
    names = {"compression.zstd": present.get("builtin"), "zstandard": present.get("installed")}
    monkeypatch.setattr(compressor, "_module", lambda name: names[name])


def unpacked(packets):
    """Return the packets that the deflated packets contain."""
    return [
        p for packet in packets for p in decode_packets(zlib.decompress(packet.compressed_packets))
    ]


def record(setup, config, *names):
    producer = setup.producer("ds")
    consumer = setup.enable(config)
    setup.write(producer, *names)
    return setup.read(consumer)


@pytest.mark.parametrize(
    "fields", [{"compression_type": 1}, {"compression": DEFLATE}], ids=["legacy", "deflate"]
)
def test_read_packets_are_deflated_into_one_packet(setup, fields):
    packets = record(setup, make_config("ds", **fields), "a", "b")
    assert len(packets) == 1
    inside = unpacked(packets)
    assert texts(inside) == ["a", "b"]
    assert kinds(inside)[-1] == "trace_stats"


def test_compressed_packets_keep_their_order(setup):
    names = [f"{number} " + "x" * 1000 for number in range(100)]
    config = make_config("ds", compression_type=1, size_kb=1024)
    packets = record(setup, config, *names)
    assert len(packets) > 1  # Each read returns one packet that contains compressed packets.
    assert texts(unpacked(packets)) == names


def test_packets_in_a_file_are_compressed(setup, tmp_path):
    producer = setup.producer("ds")
    path = tmp_path / "trace"
    config = make_config("ds", compression_type=1, write_into_file=True, output_path=str(path))
    consumer = setup.enable(config)
    setup.write(producer, "first")
    setup.advance(5000)
    setup.write(producer, "second")
    consumer.endpoint.disable_tracing()
    setup.run()
    assert texts(unpacked(decode_packets(path.read_bytes()))) == ["first", "second"]


def test_packets_of_a_clone_are_compressed(setup):
    producer = setup.producer("ds")
    source = setup.enable(make_config("ds", compression_type=1))
    setup.write(producer, "data")
    clone = setup.consumer()
    clone.clone(source.endpoint.session_id)
    setup.run()
    assert texts(unpacked(setup.read(clone))) == ["data"]


def test_empty_data_stays_empty():
    pack = compressor.make_compressor(TraceConfig(compression_type=1))
    assert pack(b"") == b""


@pytest.mark.parametrize(
    "config",
    [
        TraceConfig(),
        TraceConfig(compression=Compression()),
        # A later version of Perfetto may have a codec with an unknown field.
        TraceConfig.decode(b"\xfa\x02\x02\x1a\x00"),
        TraceConfig.decode(b"\xc0\x01\x07"),
    ],
    ids=["none", "empty", "unknown codec", "unknown type"],
)
def test_data_stays_uncompressed_if_the_codec_is_unknown(config):
    assert compressor.make_compressor(config) is None


class TestZstdCompression:
    def test_read_packets_are_compressed_by_zstd(self, monkeypatch):
        zstd = FakeZstd()
        modules(monkeypatch, builtin=zstd)
        (packet,) = record(Setup(), make_config("ds", compression=ZSTD), "data")
        assert texts(decode_packets(packet.zstd_compressed_packets[1:])) == ["data"]
        assert zstd.levels == [9]

    @pytest.mark.parametrize(("level", "used"), [(0, 3), (-5, -5), (99, 22)])
    def test_zstd_level_is_limited_to_the_valid_range(self, monkeypatch, level, used):
        zstd = FakeZstd()
        modules(monkeypatch, builtin=zstd)
        config = TraceConfig(compression=Compression(zstd=Compression.Zstd(level=level)))
        compressor.make_compressor(config)(b"data")
        assert zstd.levels == [used]

    def test_zstd_is_preferred_to_deflate_if_available(self, monkeypatch):
        zstd = FakeZstd()
        modules(monkeypatch, builtin=zstd)
        both = Compression(zstd=Compression.Zstd(), deflate=Compression.Deflate())
        config = TraceConfig(compression=both, compression_type=1)
        compressor.make_compressor(config)(b"data")
        assert zstd.levels == [3]

    def test_zstandard_package_is_used_if_python_has_no_zstd_module(self, monkeypatch):
        class Package(ModuleType):
            class ZstdCompressor:
                def __init__(self, level):
                    self.level = level

                def compress(self, data):
                    return b"%d" % self.level + data

        modules(monkeypatch, installed=Package("zstandard"))
        pack = compressor.make_compressor(TraceConfig(compression=ZSTD))
        (packet,) = decode_packets(pack(b"data"))
        assert packet.zstd_compressed_packets == b"9data"

    def test_legacy_deflate_is_used_without_a_zstd_module(self, monkeypatch):
        modules(monkeypatch)
        pack = compressor.make_compressor(TraceConfig(compression=ZSTD, compression_type=1))
        (packet,) = decode_packets(pack(b"data"))
        assert zlib.decompress(packet.compressed_packets) == b"data"

    def test_data_stays_uncompressed_without_a_zstd_module(self, monkeypatch):
        modules(monkeypatch)
        assert compressor.make_compressor(TraceConfig(compression=ZSTD)) is None

    def test_lookup_of_a_missing_codec_module_returns_none(self):
        assert compressor._module("no_such_module_anywhere") is None
        assert compressor._module("zlib") is zlib
