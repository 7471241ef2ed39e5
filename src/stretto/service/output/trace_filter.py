"""Removes fields from a session's packets unless its trace filter allows them.

Packets of producers and of the service are filtered. The trace stats, which contain the filter's
own counters, are not. A malformed packet, or one without allowed fields, becomes an empty packet.

Source: docs/formats/service.md, "Filtering".
"""

from __future__ import annotations

from stretto.base.errors import ConfigError
from stretto.protozero.filter.load import load_filter
from stretto.protozero.filter.strings import StringFilter, StringRule
from stretto.service.output.packet_encoder import number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final

    from stretto import _native
    from stretto.base.clock import Clock
    from stretto.protos.config import TraceConfig

FIRST_TURN_BYTES: Final = 16384
"""How much is filtered at once while the speed of the filter is unknown."""
TURN_NS: Final = 20_000_000
"""About how long one turn of a filter may take; meanwhile the service does nothing else."""
MIN_TURN_BYTES: Final = 1024

_PACKET: Final = 1
"""The bytecode describes a Trace; the filter applies to this field of it."""


class TraceFilter:
    """The trace filter of one reader, with its statistics.

    Args:
        compiled: The compiled `TraceConfig.trace_filter`; readers may share it.
        buffers: Number of buffers of the session.
        clock: Measures the time of filtering.
    """

    def __init__(self, compiled: _native.MessageFilter, buffers: int, clock: Clock) -> None:
        self._filter = compiled
        self._clock = clock
        self._input_packets = 0
        self._input_bytes = 0
        self._output_bytes = 0
        self._errors = 0
        self._time_taken_ns = 0
        self._bytes_discarded = [0] * buffers
        self._turn_bytes = FIRST_TURN_BYTES

    def turn_bytes(self, limit: int) -> int:
        """Return the number of bytes to filter in one turn, at most `limit`.

        The number depends on the speed of the last turn, because string rules may be slow.
        """
        return min(limit, self._turn_bytes)

    def filter(self, trace: bytes, buffer: int = -1) -> bytes:
        """Filter framed packets.

        Args:
            trace: The packets.
            buffer: Index of their buffer; -1 for the service's own packets.
        """
        if not trace:
            return trace
        start = self._clock.boottime_ns()
        filtered, packets, errors, before, after = self._filter.filter_trace(trace)
        taken_ns = self._clock.boottime_ns() - start
        self._time_taken_ns += taken_ns
        self._turn_bytes = max(MIN_TURN_BYTES, len(trace) * TURN_NS // max(taken_ns, 1))
        self._errors += errors
        self._count(packets, before, after)
        if buffer >= 0:
            self._bytes_discarded[buffer] += before - after
        return filtered

    def pass_by(self, packet: bytes) -> None:
        """Count an unfiltered packet."""
        self._count(1, len(packet), len(packet))

    def _count(self, packets: int, input_bytes: int, output_bytes: int) -> None:
        self._input_packets += packets
        self._input_bytes += input_bytes
        self._output_bytes += output_bytes

    def stats(self) -> bytes:
        """Return the current TraceStats.FilterStats, encoded."""
        out = b"".join(
            number(field, value)
            for field, value in (
                (1, self._input_packets),
                (2, self._input_bytes),
                (3, self._output_bytes),
                (4, self._errors),
                (5, self._time_taken_ns),
            )
        )
        return out + b"".join(number(20, discarded) for discarded in self._bytes_discarded)


def compile_filter(config: TraceConfig.TraceFilter) -> _native.MessageFilter:
    """Compile the filter of a config.

    Raises:
        ConfigError: The bytecode, the overlay or a string rule is invalid.
    """
    chains = (config.string_filter_chain, config.string_filter_chain_v54)
    try:
        strings = StringFilter(rule for chain in chains if chain for rule in _rules(chain))
        bytecode = config.bytecode_v2 or config.bytecode
        return load_filter(bytecode, config.bytecode_overlay_v54, strings, [_PACKET])
    except ConfigError as error:
        raise ConfigError(f"trace_filter: {error}") from error


def _rules(chain: TraceConfig.TraceFilter.StringFilterChain) -> Iterable[StringRule]:
    for rule in chain.rules:
        yield StringRule(
            rule.policy,
            rule.regex_pattern,
            atrace_payload_starts_with=rule.atrace_payload_starts_with,
            name=rule.name,
            semantic_types=rule.semantic_type,
        )
