"""Measures the throughput of a trace buffer, ours and Perfetto's: chunks in, packets out.

    python bench/_trace_buffer.py

prints {"copy_...": {"stretto": MB/s, "reference": MB/s}, ...} of chunk payload. Each round
measures both buffers; the figures are medians. Perfetto's buffer comes from the package
perfnetto; if the package isn't installed, Perfetto's figures are missing.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import tempfile
from pathlib import Path
from statistics import median

HERE = Path(__file__).parent
CORE = HERE.parent / "native" / "core"
RING_BYTES = 32 << 20
ROUNDS = 9
KINDS = {"14_byte_packets": (16_368, 14), "250_byte_packets": (4_080, 250)}
"""(payload of a chunk, size of a packet) each: a page of 16 KiB full of small events, and
Perfetto's usual page."""

SYMBOLS = (
    "_ZN8perfetto11TraceBuffer6CreateEmNS0_15OverwritePolicyE",
    "_ZN8perfetto11TraceBufferD1Ev",
    "_ZN8perfetto11TraceBuffer18CopyChunkUntrustedEtRKNS_14ClientIdentityEtjthbPKhm",
    "_ZN8perfetto11TraceBuffer9BeginReadEv",
    "_ZN8perfetto11TraceBuffer19ReadNextTracePacketEPNS_11TracePacketEPNS0_24PacketSequencePropertiesEPb",
    "_ZN8perfetto11TracePacketC1Ev",
    "_ZN8perfetto11TracePacketD1Ev",
)


class Figures(ctypes.Structure):
    _fields_ = (("copy", ctypes.c_double), ("read", ctypes.c_double))


def build(folder: str) -> ctypes.CDLL:
    """Build the library: our trace buffer, and the measured loops for it and for Perfetto's."""
    path = f"{folder}/trace_buffer.so"
    sources = [*CORE.glob("trace_buffer*.c"), CORE / "readback.c", CORE / "trace_slices.c"]
    sources += [HERE / "_trace_buffer.c", CORE / "patch_list.c", CORE / "writer_stats.c"]
    flags = ["-std=c11", "-D_GNU_SOURCE", "-O2", "-DNDEBUG", f"-I{CORE}", "-shared", "-fPIC"]
    subprocess.run(["cc", *flags, *map(str, sources), "-pthread", "-o", path], check=True)
    return ctypes.CDLL(path)


def perfetto_symbols() -> ctypes.Array[ctypes.c_void_p] | None:
    try:
        from perfnetto import _perfnetto
    except ImportError:
        return None
    library = ctypes.CDLL(_perfnetto.__file__)
    addresses = [ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in SYMBOLS]
    return (ctypes.c_void_p * len(SYMBOLS))(*addresses)


def measure(library: ctypes.CDLL, chunk: int, packet: int) -> dict[str, dict[str, float]]:
    """Return the MB/s of each library for "copy", "read" and "both" (copy, then read)."""
    symbols = perfetto_symbols()
    sizes = [ctypes.c_size_t(size) for size in (RING_BYTES, chunk, packet)]
    calls = {"stretto": (library.measure_ours, *sizes)}
    if symbols is not None:
        calls["reference"] = (library.measure_perfetto, symbols, *sizes)
    rates: dict[str, dict[str, list[float]]] = {"copy": {}, "read": {}, "both": {}}
    for _ in range(ROUNDS):
        for kind, (function, *arguments) in calls.items():
            function.restype = ctypes.c_bool
            figures = Figures()
            if not function(*arguments, 1, ctypes.byref(figures)):
                raise SystemExit(f"trace buffer: {kind} has lost packets")
            both = 1 / (1 / figures.copy + 1 / figures.read)
            for way, rate in ("copy", figures.copy), ("read", figures.read), ("both", both):
                rates[way].setdefault(kind, []).append(rate)
    return {
        way: {kind: median(values) for kind, values in kinds.items()}
        for way, kinds in rates.items()
    }


def main() -> None:
    rows: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        library = build(folder)
        for name, (chunk, packet) in KINDS.items():
            for way, kinds in measure(library, chunk, packet).items():
                rows[f"{way}_{name}"] = kinds
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
