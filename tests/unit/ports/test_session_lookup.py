from __future__ import annotations

from stretto.ports.session_lookup import session_named
from stretto.protos.trace import TracingServiceState


def test_session_is_found_by_its_name_and_clones_are_skipped() -> None:
    session = TracingServiceState.TracingSession
    state = TracingServiceState(
        tracing_sessions=[
            session(id=3, unique_session_name="other", state="STARTED"),
            session(id=4, unique_session_name="mine", state="CLONED_READ_ONLY"),
            session(id=5, unique_session_name="mine", state="STARTED"),
        ]
    )
    assert session_named("mine", state) == 5
    assert session_named("none", state) == 0
