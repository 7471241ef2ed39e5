"""How much the tracing service takes on, and its default times (perfetto-abi 5.1)."""

from __future__ import annotations

from typing import Final

MAX_SESSIONS: Final = 15
MAX_SESSIONS_PER_UID: Final = 5
MAX_BUFFERS_PER_SESSION: Final = 128
MAX_DATA_SOURCES_PER_PRODUCER: Final = 256
MAX_PENDING_FLUSHES: Final = 1000
MAX_SLOW_DATA_SOURCES: Final = 32
MAX_QUEUED_CLOCK_SNAPSHOTS: Final = 16
MAX_QUEUED_FLUSH_EVENTS: Final = 64

MAX_DURATION_MS: Final = 7 * 24 * 3600 * 1000
MAX_DURATION_WITH_GUARDRAILS_MS: Final = 24 * 3600 * 1000
MAX_BUFFERS_WITH_GUARDRAILS_KB: Final = 128 * 1024
RESTART_WITH_GUARDRAILS_NS: Final = 300 * 10**9
"""With extra guardrails, a session of the same name may start this often."""

DEFAULT_FLUSH_TIMEOUT_MS: Final = 5000
DEFAULT_STOP_TIMEOUT_MS: Final = 5000
DEFAULT_SNAPSHOT_INTERVAL_MS: Final = 10_000
SLOW_START_MS: Final = 20_000

DEFAULT_FILE_WRITE_PERIOD_MS: Final = 5000
MIN_FILE_WRITE_PERIOD_MS: Final = 100
FILE_FLUSH_PERIOD_MS: Final = 5000
"""Period of the flushes of a session that writes its file more often than this."""

READ_BYTES_PER_TASK: Final = 32 * 1024
FILE_BYTES_PER_STEP: Final = 1024 * 1024
FILE_STEPS_PER_TASK: Final = 16
