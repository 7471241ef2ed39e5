"""Installing and removing the tracer in `stretto.base.rpc_hooks`, and the categories' switches.

A switch is on while a session records its category, the tracer is installed, and the category is
not disabled. At each change of a switch, its listeners replace generated stubs.
"""

from __future__ import annotations

import os
from _thread import RLock

import stretto
from stretto.base import rpc_hooks
from stretto.base.errors import ConfigError
from stretto.flows.channel_state import SCHEMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from stretto.base.rpc_hooks import TraceSwitch
    from stretto.flows.tracer import FlowTracer

OWN_CATEGORY = "stretto.ipc"
"""The category of the messages between this process and the tracing service."""

_BAD_CATEGORY = "bad category"


class _Installation:
    """The installed tracer, and the disabled categories."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.tracer: FlowTracer | None = None
        self.own_ports = False
        self.options: tuple[object, ...] = ()
        """The options of the installed tracer."""
        self.disabled: set[str] = set()
        self.categories: dict[str, stretto.Category | None] = {}
        self.watches_forks = False

    def adopt(self, switch: TraceSwitch) -> None:
        """Connect a switch to its category."""
        with self.lock:
            if switch.category not in self.categories:
                self.categories[switch.category] = self._observed(switch)
            self.update(switch)

    def update(self, switch: TraceSwitch) -> None:
        """Switch tracing on if a tracer is installed and the switch's category is enabled.

        Tracing is off for categories given to `disable`."""
        name = switch.category
        category = self.categories.get(name)
        switch.set(
            category is not None
            and category.enabled
            and self.tracer is not None
            and name not in self.disabled
            and (name != OWN_CATEGORY or self.own_ports)
        )

    def update_all(self) -> None:
        for name in list(self.categories):
            self.update(rpc_hooks.switch(name))

    def _observed(self, switch: TraceSwitch) -> stretto.Category | None:
        from stretto.client.track_event import slots

        tags = ["debug"] if switch.category == OWN_CATEGORY else []
        try:
            category = stretto.Category(switch.category, tags=tags)
        except (ValueError, TypeError):
            # The name comes from a schema: an invalid name must not raise in the program.
            if self.tracer is not None:
                self.tracer.suppressed[_BAD_CATEGORY] = 1
            return None
        slots.observe(category, lambda _enabled: self.update(switch))
        return category


_here = _Installation()


def install(
    scheme: str = "anchored",
    *,
    tcp: bool = False,
    own_ports: bool = False,
    bodies: bool | Collection[str] = False,
) -> None:
    """Trace RPC from now on. Calling it again with the same options has no effect.

    Call it before the program connects: on an existing connection, one-way messages have no arrows
    until the next two-way call.

    Args:
        scheme: How flow ids are made: `anchored`, or for comparison `hash` or `rfc0035`
            (docs/flows.md). Both ends of a connection must use the same scheme.
        tcp: Identify TCP connections by the addresses of their ends. This works only if there is no
            proxy or NAT between them.
        own_ports: Also trace the messages between this process and the tracing service: category
            `stretto.ipc`, tagged `debug`.
        bodies: Categories whose messages are recorded with their contents (True: all), as the
            argument `body`: an excerpt without the members that the definition marks as sensitive
            (`@sensitive` in FIDL, `[debug_redact = true]` in .proto files).

    Raises:
        ConfigError: The scheme is unknown, `bodies` is a single name, or the tracer is installed
            with other options: `uninstall` first, and connect anew.
    """
    if isinstance(bodies, str):
        raise ConfigError(f"bodies takes names of categories: [{bodies!r}]")
    if scheme not in SCHEMES:
        raise ConfigError(f"no scheme {scheme!r}; there are {', '.join(SCHEMES)}")
    if not stretto.available():
        return
    from stretto.flows.tracer import FlowTracer

    options = (scheme, tcp, own_ports, bodies if isinstance(bodies, bool) else frozenset(bodies))
    with _here.lock:
        if _here.tracer is not None:
            if options != _here.options:
                raise ConfigError(
                    f"flows are installed already, with {_named(_here.options)}, not "
                    f"{_named(options)}: call it once, or stretto.flows.uninstall() before"
                )
            return
        _here.options = options
        _here.tracer = tracer = FlowTracer(scheme, tcp=tcp, bodies=bodies)
        _here.own_ports = own_ports
        if not _here.watches_forks:
            _here.watches_forks = True
            os.register_at_fork(
                before=_before_fork,
                after_in_parent=_after_fork_in_parent,
                after_in_child=_after_fork_in_child,
            )
        rpc_hooks.set_hooks(tracer, _here.adopt)


def _named(options: tuple[object, ...]) -> str:
    scheme, tcp, own_ports, bodies = options
    shown = sorted(bodies) if isinstance(bodies, frozenset) else bodies
    return f"({scheme!r}, tcp={tcp}, own_ports={own_ports}, bodies={shown})"


def uninstall() -> None:
    """Stop tracing RPC, and delete the statistics."""
    with _here.lock:
        _here.tracer = None
        rpc_hooks.set_hooks(None, None)


def installed() -> bool:
    """Whether RPC is traced."""
    return _here.tracer is not None


def enable(category: str) -> None:
    """Trace the methods of a category again, after `disable`."""
    with _here.lock:
        _here.disabled.discard(category)
        _here.update_all()


def disable(category: str) -> None:
    """Stop tracing the methods of a category, even if sessions record it."""
    with _here.lock:
        _here.disabled.add(category)
        _here.update_all()


def incoming() -> int:
    """Return the flow of the message that this thread or task is handling; 0 if there is none.

    Tasks started by a handler, and threads started by `asyncio.to_thread`, inherit the flow. Pass
    the flow to a slice to draw the message's arrow to that slice: `stretto.slice("work",
    flow=stretto.flows.incoming() or None)`.
    """
    from stretto.flows import tracer

    return tracer.incoming.get()


def stats() -> dict[str, int]:
    """Return the number of traced messages without an arrow, by reason.

    - `not synchronised`: the connection existed before `install()`, or had a loss or a fork. Then
      one-way messages have no arrows until the next two-way call. Messages of streams and queues
      never have arrows again.
    - `forked`: the connection is the parent's, or a forked child uses it, too.
    - `no header`: a request of HTTP or gRPC has no `traceparent`, and `add_header` was not set.
    - Reasons why the kernel could not identify the connection: `peer gone` (before this end was
      made), `peer not found` (in another network namespace, or netlink is forbidden), `not
      accepted` (yet), `not a unix socket` (see `install(tcp=True)`), `not a socket`, `no socket`,
      `not connected`, `no cookies` (an old kernel), `no free descriptor`.
    - `bad category`: a schema names an invalid category.
    """
    return {} if _here.tracer is None else dict(_here.tracer.suppressed)


def suppress(reason: str) -> None:
    """Count a traced message that has no arrow."""
    tracer = _here.tracer
    if tracer is not None:
        tracer.suppress(reason)


def _before_fork() -> None:
    tracer = _here.tracer
    if tracer is not None:
        tracer.before_fork()


def _after_fork_in_parent() -> None:
    tracer = _here.tracer
    if tracer is not None:
        tracer.after_fork_in_parent()


def _after_fork_in_child() -> None:
    _here.lock = RLock()
    if _here.tracer is not None:
        _here.tracer.after_fork_in_child()
