"""The CPU time that a data source may use."""

from __future__ import annotations

SHARE = 20
"""A data source may use a twentieth of a CPU."""
BURST_NS = 50_000_000
"""How much it may use at once, before that counts."""


class Budget:
    """Postpones samples so that they use no more CPU time than they may.

    CPU time makes a debt, which shrinks with the time at the rate that is allowed. With a debt
    above BURST_NS, no sample is taken until it has shrunk to that.

    Args:
        cpus: How many CPUs' share the samples may use.
    """

    def __init__(self, cpus: int = 1) -> None:
        self._wait_per_ns = SHARE / cpus
        self._debt_ns = 0.0
        self._paid_until_ns = 0

    def spend(self, now_ns: int, cpu_ns: int) -> int:
        """Add a sample; return for how long the next one must wait, in ns.

        Args:
            now_ns: The time.
            cpu_ns: The CPU time of the sample.
        """
        paid = (now_ns - self._paid_until_ns) / self._wait_per_ns
        self._debt_ns = max(0.0, self._debt_ns - paid) + cpu_ns
        self._paid_until_ns = now_ns
        return int(max(0.0, self._debt_ns - BURST_NS) * self._wait_per_ns)
