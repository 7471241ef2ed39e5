"""Limits and default times of the tracing service.

Source: docs/formats/service.md, "Limits".
"""

from __future__ import annotations

MAX_SESSIONS = 15
MAX_SESSIONS_PER_UID = 5
MAX_BUFFERS_PER_SESSION = 128
MAX_DATA_SOURCES_PER_PRODUCER = 256
MAX_PENDING_FLUSHES = 1000
MAX_SLOW_DATA_SOURCES = 32
MAX_QUEUED_CLOCK_SNAPSHOTS = 16
MAX_QUEUED_FLUSH_EVENTS = 64
MAX_CONCURRENT_SESSION_EVENTS = 4096
MAX_SYNCED_CLOCKS = 5
MAX_RECEIVED_TRIGGERS = 4096
MAX_TRIGGER_HISTORY = 65536
TRIGGER_HISTORY_NS = 24 * 3600 * 10**9

MAX_DURATION_MS = 7 * 24 * 3600 * 1000
MAX_DURATION_WITH_GUARDRAILS_MS = 24 * 3600 * 1000
MAX_BUFFERS_WITH_GUARDRAILS_KB = 128 * 1024
RESTART_WITH_GUARDRAILS_NS = 300 * 10**9
"""With extra guardrails, minimum time between starts of sessions of the same name."""
MAX_GUARDED_STARTS = 1000
"""The largest number of session names whose last start is stored."""

DEFAULT_FLUSH_TIMEOUT_MS = 5000
DEFAULT_STOP_TIMEOUT_MS = 5000
DEFAULT_SNAPSHOT_INTERVAL_MS = 10_000
SLOW_START_MS = 20_000

DEFAULT_FILE_WRITE_PERIOD_MS = 5000
MIN_FILE_WRITE_PERIOD_MS = 100
FILE_FLUSH_PERIOD_MS = 5000
"""Flush period of a session whose file write period is not longer."""

FILE_QUEUE_BYTES = 8 << 20
"""The largest number of bytes queued for a session's file; further data stays in the buffers."""
FILE_PATIENCE_MS = 30_000
"""A session ends if its file makes no progress for this time."""
MAX_UNFINISHED_FILES = 15
"""The largest number of files that are written for freed sessions; then the oldest is abandoned."""

READ_BYTES_PER_TASK = 32 * 1024
FILE_BYTES_PER_STEP = 1024 * 1024
FILE_STEPS_PER_TASK = 2
"""Commits of producers wait during a task; 8 MiB of shared memory fill in 50 ms."""
