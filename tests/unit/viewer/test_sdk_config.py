"""Recordings of the UI with *Perfetto SDK* and no category are recognized."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stretto.ipc.frames import encode_frame
from stretto.protos.config import DataSourceConfig, TraceConfig, TrackEventConfig
from stretto.protos.ipc import EnableTracingRequest, FlushRequest, IPCFrame
from stretto.viewer.sdk_config import lacks_categories


def frame_of(request: bytes) -> bytes:
    call = IPCFrame.InvokeMethod(service_id=1, method_id=2, args_proto=request)
    return encode_frame(IPCFrame(request_id=3, msg_invoke_method=call))


def start(*sources: DataSourceConfig) -> bytes:
    config = TraceConfig(data_sources=[TraceConfig.DataSource(config=s) for s in sources])
    return frame_of(EnableTracingRequest(trace_config=config).encode())


def track_events(*enabled: str) -> DataSourceConfig:
    events = TrackEventConfig(disabled_categories=["*"], enabled_categories=list(enabled))
    return DataSourceConfig(name="track_event", track_event_config=events)


OTHER = DataSourceConfig(name="linux.ftrace")


def test_config_of_the_ui_without_a_category_is_recognized() -> None:
    assert lacks_categories(start(OTHER, track_events()))


@pytest.mark.parametrize(
    "message",
    [
        start(),
        start(OTHER),
        start(track_events("shop")),
        start(DataSourceConfig(name="track_event")),
        start(track_events(), track_events("*")),
        frame_of(FlushRequest(timeout_ms=5).encode()),
        start(track_events())[:-1],
        encode_frame(IPCFrame(request_id=1)),
        b"",
    ],
)
def test_other_messages_are_not_recognized(message: bytes) -> None:
    assert not lacks_categories(message)


@given(st.binary(max_size=64))
def test_no_bytes_raise(data: bytes) -> None:
    lacks_categories(data)
    lacks_categories(frame_of(data))
