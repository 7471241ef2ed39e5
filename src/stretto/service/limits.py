"""How much the tracing service takes on, and its default times (perfetto-abi 5.1)."""

from __future__ import annotations

MAX_SESSIONS = 15
MAX_SESSIONS_PER_UID = 5
MAX_BUFFERS_PER_SESSION = 128
MAX_DATA_SOURCES_PER_PRODUCER = 256
MAX_PENDING_FLUSHES = 1000
MAX_SLOW_DATA_SOURCES = 32
MAX_QUEUED_CLOCK_SNAPSHOTS = 16
MAX_QUEUED_FLUSH_EVENTS = 64

MAX_DURATION_MS = 7 * 24 * 3600 * 1000
MAX_DURATION_WITH_GUARDRAILS_MS = 24 * 3600 * 1000
MAX_BUFFERS_WITH_GUARDRAILS_KB = 128 * 1024
RESTART_WITH_GUARDRAILS_NS = 300 * 10**9
"""With extra guardrails, a session of the same name may start this often."""

DEFAULT_FLUSH_TIMEOUT_MS = 5000
DEFAULT_STOP_TIMEOUT_MS = 5000
DEFAULT_SNAPSHOT_INTERVAL_MS = 10_000
SLOW_START_MS = 20_000

DEFAULT_FILE_WRITE_PERIOD_MS = 5000
MIN_FILE_WRITE_PERIOD_MS = 100
FILE_FLUSH_PERIOD_MS = 5000
"""Period of the flushes of a session that writes its file more often than this."""

READ_BYTES_PER_TASK = 32 * 1024
FILE_BYTES_PER_STEP = 1024 * 1024
FILE_STEPS_PER_TASK = 2
"""So long the producers' commits wait; 8 MiB of shared memory fill in 50 ms."""
