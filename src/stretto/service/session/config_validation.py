"""Checks a TraceConfig, in the order of docs/formats/service.md, "Order of checks".

`check_config` checks the config alone, `check_against_sessions` checks it against the other
sessions. Both raise errors with a message for the user, which the consumer receives as the
session's error.
"""

from __future__ import annotations

from stretto.base.c_modules import defaultdict
from stretto.base.errors import ConfigError, SessionError
from stretto.service import limits
from stretto.service.session.compiled_config import CompiledConfig
from stretto.service.session.requested_data_sources import RequestedDataSources
from stretto.service.session.triggers import (
    CLONE_SNAPSHOT,
    NO_MODE,
    START_TRACING,
    STOP_TRACING,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Protocol

    from stretto.protos.config import DataSourceConfig, TraceConfig
    from stretto.service.session.configured_triggers import ConfiguredTrigger
    from stretto.service.session.guarded_starts import GuardedStarts

    class ExistingSession(Protocol):
        """The members of an existing session that the checks use."""

        uid: int

        @property
        def config(self) -> TraceConfig: ...
        @property
        def active(self) -> bool: ...
        @property
        def is_clone(self) -> bool: ...


_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_FILENAME_CHARACTERS = frozenset(f"{_LETTERS}{_LETTERS.upper()}0123456789-_.")
_MAX_FILL_POLICY = 2
_MAX_BUFFER_KB = (1 << 22) - 1


def check_config(config: TraceConfig, *, has_fd: bool) -> CompiledConfig:
    """Check a config by itself, and compile its triggers and filters.

    Args:
        config: The decoded config.
        has_fd: Whether a file descriptor was passed with it.

    Raises:
        ConfigError: The config is invalid; the message contains the field and a correction.
    """
    _check_duration(config)
    compiled_triggers = _check_triggers(config)
    if not _FILENAME_CHARACTERS.issuperset(config.bugreport_filename):
        raise ConfigError(
            f"bugreport_filename {config.bugreport_filename!r}: only letters, digits, '-', '_' "
            "and '.' are allowed."
        )
    if config.enable_extra_guardrails:
        _check_guardrails(config)
    _check_buffers(config)
    requested = _check_data_sources(config)
    message_filter = None
    if config.trace_filter is not None:
        from stretto.service.output.trace_filter import compile_filter

        message_filter = compile_filter(config.trace_filter)
    _check_output(config, has_fd=has_fd)
    return CompiledConfig(config, requested, compiled_triggers, message_filter)


def _longest_ms(config: TraceConfig) -> int:
    guarded = config.enable_extra_guardrails
    return limits.MAX_DURATION_WITH_GUARDRAILS_MS if guarded else limits.MAX_DURATION_MS


def _check_duration(config: TraceConfig) -> None:
    limit = _longest_ms(config)
    if config.duration_ms > limit:
        raise ConfigError(
            f"duration_ms {config.duration_ms} is too long: at most {limit}, or 0 for no end."
        )


def _check_triggers(config: TraceConfig) -> dict[str, ConfiguredTrigger]:
    triggers = config.trigger_config
    if triggers is None:
        return {}
    from stretto.service.session.configured_triggers import compile_triggers

    compiled = compile_triggers(triggers)
    _check_trigger_mode(config, triggers)
    return compiled


def _check_trigger_mode(config: TraceConfig, triggers: TraceConfig.TriggerConfig) -> None:
    mode, limit = triggers.trigger_mode, _longest_ms(config)
    if mode > CLONE_SNAPSHOT:
        raise ConfigError(
            f"trigger_mode {mode} is unknown: use START_TRACING (1), STOP_TRACING (2) or "
            "CLONE_SNAPSHOT (4)."
        )
    if triggers.use_clone_snapshot_if_available and mode != STOP_TRACING:
        raise ConfigError("use_clone_snapshot_if_available needs trigger_mode STOP_TRACING.")
    if mode == NO_MODE:
        return
    if config.duration_ms:
        raise ConfigError(
            "duration_ms can't be combined with triggers: use trigger_timeout_ms and stop_delay_ms."
        )
    if not 0 < triggers.trigger_timeout_ms <= limit:
        raise ConfigError(
            f"trigger_timeout_ms is {triggers.trigger_timeout_ms}: it must be between 1 and "
            f"{limit}."
        )
    if mode != START_TRACING and config.write_into_file:
        raise ConfigError(
            "write_into_file can't be combined with triggers that stop or clone: the file would "
            "be written before they come."
        )
    names: set[str] = set()
    for trigger in triggers.triggers:
        if trigger.name in names:
            raise ConfigError(f"Trigger {trigger.name!r} is listed twice: remove one.")
        names.add(trigger.name)


def _check_guardrails(config: TraceConfig) -> None:
    if config.deferred_start:
        raise ConfigError("deferred_start can't be combined with enable_extra_guardrails.")
    for buffer in config.buffers:
        if buffer.size_kb % 4:
            raise ConfigError(
                f"Buffer of {buffer.size_kb} KiB: with enable_extra_guardrails each size_kb must "
                "be a multiple of 4."
            )
    overrides = config.guardrail_overrides
    limit = limits.MAX_BUFFERS_WITH_GUARDRAILS_KB
    if overrides is not None:
        limit = max(limit, overrides.max_tracing_buffer_size_kb)
    total = sum(buffer.size_kb for buffer in config.buffers)
    if total > limit:
        raise ConfigError(
            f"The buffers take {total} KiB: at most {limit} are allowed; shrink them."
        )


def _check_buffers(config: TraceConfig) -> None:
    count = len(config.buffers)
    if count > limits.MAX_BUFFERS_PER_SESSION:
        raise ConfigError(
            f"{count} buffers: a session may have at most {limits.MAX_BUFFERS_PER_SESSION}."
        )
    names: set[str] = set()
    for buffer in config.buffers:
        if buffer.name and buffer.name in names:
            raise ConfigError(f"Two buffers are named {buffer.name!r}: rename one.")
        names.add(buffer.name)
        if not 0 < buffer.size_kb <= _MAX_BUFFER_KB:
            raise ConfigError(
                f"Invalid buffer sizes: size_kb is {buffer.size_kb}, "
                f"it must be between 1 and {_MAX_BUFFER_KB}."
            )
        if buffer.fill_policy > _MAX_FILL_POLICY:
            raise ConfigError(
                f"fill_policy {buffer.fill_policy} is unknown: use RING_BUFFER (1) or DISCARD (2)."
            )


def _check_data_sources(config: TraceConfig) -> RequestedDataSources:
    for source in config.data_sources:
        requested: DataSourceConfig | None = vars(source).get("config")
        if requested is not None:
            buffer_index(requested, config)
    return RequestedDataSources(config)


def buffer_index(source: DataSourceConfig, config: TraceConfig) -> int:
    """Return the index of the buffer that a data source targets by name or number.

    Raises:
        ConfigError: There is no such buffer, or name and number refer to different buffers.
    """
    count = len(config.buffers)
    fields = vars(source)
    if count and "target_buffer" not in fields and "target_buffer_name" not in fields:
        return 0  # This is a fast path: most entries of a long config set neither field.
    if not source.target_buffer_name:
        if source.target_buffer >= count:
            raise ConfigError(
                f"Data source {source.name!r} targets buffer {source.target_buffer}, "
                f"but the config has {count}: add a buffer or correct target_buffer."
            )
        return source.target_buffer
    names = [buffer.name for buffer in config.buffers]
    if source.target_buffer_name not in names:
        raise ConfigError(
            f"Data source {source.name!r} targets a buffer named "
            f"{source.target_buffer_name!r}, but no buffer has that name."
        )
    index = names.index(source.target_buffer_name)
    if source.target_buffer not in (0, index):
        raise ConfigError(
            f"Data source {source.name!r}: target_buffer {source.target_buffer} isn't the "
            f"buffer named {source.target_buffer_name!r} ({index}); leave one of them out."
        )
    return index


def _check_output(config: TraceConfig, *, has_fd: bool) -> None:
    if not config.write_into_file:
        return
    if bool(config.output_path) == has_fd:
        raise ConfigError(
            "write_into_file needs either output_path or a file descriptor, and not both."
        )


def check_exclusive(config: TraceConfig, sessions: Collection[ExistingSession]) -> None:
    """Check that no active session is exclusive with the same or a higher priority.

    Args:
        config: The config, already checked by itself.
        sessions: All sessions.

    Raises:
        SessionError: Such a session is active.
    """
    requested = config.exclusive_prio
    held = max((each.config.exclusive_prio for each in sessions if each.active), default=0)
    if held and held >= requested:
        raise SessionError(
            f"An exclusive session with priority {held} >= requested priority {requested} is "
            "already active."
        )


def check_against_sessions(
    config: TraceConfig,
    uid: int,
    sessions: Collection[ExistingSession],
    guarded_starts: GuardedStarts,
    now_ns: int,
) -> None:
    """Check a config against the other sessions of the service.

    Args:
        config: The config, already checked by itself.
        uid: User id of the consumer.
        sessions: All sessions, including those that ended but were not freed.
        guarded_starts: Start times of sessions with extra guardrails.
        now_ns: Current time of CLOCK_BOOTTIME.

    Raises:
        SessionError: The session can't run now; the message contains the reason.
    """
    name = config.unique_session_name
    originals = [session for session in sessions if not session.is_clone]
    if name and any(session.config.unique_session_name == name for session in originals):
        raise SessionError(f"A session named {name!r} exists already: end it or choose another.")
    _check_semaphores(config, [session.config for session in sessions if session.active])
    waited = guarded_starts.age_ns(name, now_ns) if config.enable_extra_guardrails else None
    if waited is not None:
        raise SessionError(
            f"A session named {name!r} was started {waited // 10**9} s ago: with "
            "enable_extra_guardrails 300 s must pass."
        )
    if sum(session.uid == uid for session in sessions) >= limits.MAX_SESSIONS_PER_UID:
        raise SessionError(
            f"User {uid} has {limits.MAX_SESSIONS_PER_UID} sessions, which is the most: end one."
        )
    if len(sessions) >= limits.MAX_SESSIONS:
        raise SessionError(f"{limits.MAX_SESSIONS} sessions exist, which is the most: end one.")


def _check_semaphores(config: TraceConfig, active: Sequence[TraceConfig]) -> None:
    holders: defaultdict[str, int] = defaultdict(int)
    allowed: dict[str, int] = {}
    for other in active:
        for held in other.session_semaphores:
            most = held.max_other_session_count
            holders[held.name] += 1
            allowed[held.name] = min(allowed.get(held.name, most), most)
    for requested in config.session_semaphores:
        count, most = holders[requested.name], requested.max_other_session_count
        if count > min(most, allowed.get(requested.name, most)):
            raise SessionError(
                f"Semaphore {requested.name!r}: {count} other sessions hold it, "
                "which is the most; end one."
            )
