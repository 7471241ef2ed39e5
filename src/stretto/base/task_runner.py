"""Task runner: the event loop of the service and of every connection.

Tasks run on the runner's thread, one at a time, in the order in which they were posted; delayed
tasks run at or after their time; descriptor callbacks run when the descriptor is ready. `post` and
`post_delayed` may be called from any thread, the other methods only from the runner's own.

asyncio isn't used: its transports drop file descriptors, and importing it would cost a traced
program 50 ms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class TaskRunner(Protocol):
    """The event loop of the service and of the connections."""

    def post(self, task: Callable[[], object]) -> None:
        """Run `task` soon."""

    def post_delayed(self, task: Callable[[], object], delay_ms: float) -> object:
        """Run `task` once, `delay_ms` milliseconds from now. Returns a token for `cancel`."""

    def cancel(self, token: object) -> None:
        """Cancel a delayed task. No effect if it has run."""

    def watch(
        self,
        fd: int,
        on_readable: Callable[[], object] | None,
        on_writable: Callable[[], object] | None = None,
        *,
        urgent: bool = False,
    ) -> None:
        """Call back while `fd` is ready; replaces an earlier watch of the same `fd`.

        Callbacks of `urgent` descriptors run before the callbacks of other ready descriptors.
        """

    def unwatch(self, fd: int) -> None:
        """Stop watching `fd`. No effect if it isn't watched."""
