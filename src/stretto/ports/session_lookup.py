"""Finds a session in the state of a service."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.protos.trace import TracingServiceState

CLONE_STATE = "CLONED_READ_ONLY"


def session_named(name: str, state: TracingServiceState) -> int:
    """Return the id of the session with this unique name; 0 if there is none.

    Perfetto's service of v48 can't clone a session by its name, so consumers look up the id first.
    A clone has the name of its source, and is skipped.
    """
    originals = (each for each in state.tracing_sessions if each.state != CLONE_STATE)
    return next((each.id for each in originals if each.unique_session_name == name), 0)
