"""Encodes the service's state and capabilities for the queries of consumers."""

from __future__ import annotations

from stretto.ports.service_state import encoded_data_source
from stretto.protos.ipc import ObservableEvents, TracingServiceCapabilities
from stretto.protos.trace import TracingServiceState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import Final

    from stretto.service.endpoints.producer_endpoint import ProducerEndpoint
    from stretto.service.session.data_source import RegisteredDataSource
    from stretto.service.session.service_tracing_session import ServiceTracingSession

_REALTIME: Final = 1


def service_state(
    version: str,
    sessions: Collection[ServiceTracingSession],
    producers: Iterable[ProducerEndpoint],
    data_sources: Iterable[RegisteredDataSource],
    uid: int,
    *,
    sessions_only: bool,
) -> bytes:
    """Return the encoded TracingServiceState that a consumer may see.

    Args:
        version: Version string of the service.
        sessions: All sessions.
        producers: All connected producers.
        data_sources: All registered data sources.
        uid: User id of the consumer; only sessions that this user may clone are included.
        sessions_only: Whether to omit producers and data sources.
    """
    state = TracingServiceState(
        tracing_service_version=version,
        num_sessions=len(sessions),
        num_sessions_started=sum(session.started for session in sessions),
        supports_tracing_sessions=True,
        tracing_sessions=[_session(each) for each in sessions if each.may_be_cloned_by(uid)],
    )
    if sessions_only:
        return state.encode()
    state.producers = [_producer(producer) for producer in producers]
    return state.encode() + b"".join(
        encoded_data_source(source.descriptor, source.producer.producer_id)
        for source in data_sources
    )


def _producer(producer: ProducerEndpoint) -> TracingServiceState.Producer:
    identity = producer.identity
    state = TracingServiceState.Producer(
        id=producer.producer_id,
        name=identity.name,
        pid=identity.pid,
        uid=identity.uid,
        sdk_version=identity.sdk_version,
    )
    if identity.machine_id:
        state.machine_id = identity.machine_id
        state.machine_name = identity.machine_name
    return state


def _session(session: ServiceTracingSession) -> TracingServiceState.TracingSession:
    config = session.config
    state = TracingServiceState.TracingSession(
        id=session.session_id,
        consumer_uid=session.uid,
        state=session.state,
        unique_session_name=config.unique_session_name,
        buffer_size_kb=[buffer.size_kb for buffer in config.buffers],
        duration_ms=session.duration_ms,
        num_data_sources=len(session.instances),
        is_started=session.started,
    )
    started_at = dict(session.clocks.initial or ()).get(_REALTIME)
    if started_at is not None:
        state.start_realtime_ns = started_at
    if config.bugreport_score > 0:
        state.bugreport_score = config.bugreport_score
    if config.bugreport_filename:
        state.bugreport_filename = config.bugreport_filename
    return state


def service_capabilities() -> TracingServiceCapabilities:
    """Return the capabilities of this service."""
    return TracingServiceCapabilities(
        has_query_capabilities=True,
        observable_events=[
            ObservableEvents.TYPE_DATA_SOURCES_INSTANCES,
            ObservableEvents.TYPE_ALL_DATA_SOURCES_STARTED,
            ObservableEvents.TYPE_CLONE_TRIGGER_HIT,
        ],
        has_trace_config_output_path=True,
        has_clone_session=True,
    )
