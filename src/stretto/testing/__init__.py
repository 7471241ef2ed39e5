"""Public test kit: fake clock and task runner, and mock producers and consumers without sockets.

The names below load their modules when they are first used: a test that needs only a fake clock
doesn't import a tracing service.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stretto.testing.captured_events import CapturedEvent, CapturedEvents
    from stretto.testing.chunk_builder import ChunkBuilder
    from stretto.testing.decoded_packets import decode_packets
    from stretto.testing.fake_clock import FakeClock
    from stretto.testing.fake_task_runner import FakeTaskRunner
    from stretto.testing.in_memory_session import InMemorySession
    from stretto.testing.mock_consumer import MockConsumer
    from stretto.testing.mock_producer import MockProducer

__all__ = [
    "CapturedEvent",
    "CapturedEvents",
    "ChunkBuilder",
    "FakeClock",
    "FakeTaskRunner",
    "InMemorySession",
    "MockConsumer",
    "MockProducer",
    "decode_packets",
]

_MODULES = {
    "CapturedEvent": "captured_events",
    "CapturedEvents": "captured_events",
    "ChunkBuilder": "chunk_builder",
    "FakeClock": "fake_clock",
    "FakeTaskRunner": "fake_task_runner",
    "InMemorySession": "in_memory_session",
    "MockConsumer": "mock_consumer",
    "MockProducer": "mock_producer",
    "decode_packets": "decoded_packets",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
