"""Raises the scheduling priority of the service while sessions request it.

The highest requested priority applies: real-time priorities are above nice values. Without
requests, the service has its original priority.
"""

from __future__ import annotations

import os

from stretto.base.errors import ConfigError, SessionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from stretto.protos.config import PriorityBoostConfig

_OTHER: Final = 1
_FIFO: Final = 2
"""PriorityBoostConfig.BoostPolicy."""
_RANGES: Final = {_OTHER: range(21), _FIFO: range(1, 100)}

Boost = tuple[int, int]
"""(policy, priority); a higher tuple is a higher priority."""


class Scheduler:
    """Changes the scheduling priority of this process."""

    def __init__(self) -> None:
        self._policy = os.sched_getscheduler(0)
        self._parameters = os.sched_getparam(0)
        self._nice = os.getpriority(os.PRIO_PROCESS, 0)

    def boost(self, policy: int, priority: int) -> None:
        """Apply a boost. Raises OSError without permission."""
        if policy == _FIFO:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
            return
        self.restore()
        os.setpriority(os.PRIO_PROCESS, 0, -priority)

    def restore(self) -> None:
        """Restore the original priority. Raises OSError."""
        os.sched_setscheduler(0, self._policy, self._parameters)
        os.setpriority(os.PRIO_PROCESS, 0, self._nice)


class PriorityBoosts:
    """The boosts of all sessions."""

    def __init__(self, scheduler: Scheduler | None = None) -> None:
        """Create the boosts; by default the scheduler is created with the first boost."""
        self._scheduler = scheduler
        self._boosts: dict[int, Boost] = {}

    def add(self, session_id: int, config: PriorityBoostConfig) -> None:
        """Add the boost of a session.

        Raises:
            ConfigError: There is no such policy or priority.
            SessionError: This user may not raise the priority.
        """
        boost = _checked(config)
        self._scheduler = self._scheduler or Scheduler()
        self._boosts[session_id] = boost
        try:
            self._apply()
        except OSError as error:
            del self._boosts[session_id]
            raise SessionError(
                f"priority_boost {boost[1]} isn't permitted ({error.strerror}): run the service "
                "with CAP_SYS_NICE, or leave it out."
            ) from error

    def remove(self, session_id: int) -> None:
        """Remove the boost of an ended session. No effect if the session had no boost."""
        if self._boosts.pop(session_id, None) is None:
            return
        try:
            self._apply()
        except OSError:
            pass  # If lowering the priority is not permitted, the priority stays raised.

    def _apply(self) -> None:
        assert self._scheduler is not None  # The scheduler is created with the first boost.
        if self._boosts:
            self._scheduler.boost(*max(self._boosts.values()))
        else:
            self._scheduler.restore()


def _checked(config: PriorityBoostConfig) -> Boost:
    allowed = _RANGES.get(config.policy)
    if allowed is None:
        raise ConfigError("priority_boost needs a policy: POLICY_SCHED_OTHER or POLICY_SCHED_FIFO.")
    if config.priority not in allowed:
        raise ConfigError(
            f"priority_boost: priority {config.priority} must be between {allowed[0]} and "
            f"{allowed[-1]} with this policy."
        )
    return config.policy, config.priority
