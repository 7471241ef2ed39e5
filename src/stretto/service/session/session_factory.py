"""Creates a session from a consumer's config, or raises an error with the reason of a refusal.

The checks run in the order of docs/formats/service.md, "Order of checks".
"""

from __future__ import annotations

import os

from stretto.base.errors import ConfigError, DecodeError, SessionError
from stretto.protos.config import TraceConfig
from stretto.service.session.config_validation import (
    check_against_sessions,
    check_config,
    check_exclusive,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

    from stretto.service.service_context import ServiceContext
    from stretto.service.session.service_tracing_session import ServiceTracingSession
    from stretto.service.session.session_owner import SessionOwner
    from stretto.service.session.session_registry import SessionRegistry

_LOCKDOWN_CLEAR: Final = 1
_LOCKDOWN_SET: Final = 2


def create_session(
    sessions: SessionRegistry,
    consumer: SessionOwner,
    config_bytes: bytes,
    fd: int | None,
    ring_fds: Mapping[int, int],
) -> ServiceTracingSession:
    """Create a session in state CONFIGURED.

    Args:
        sessions: The registry that the session is added to.
        consumer: The owner of the session.
        config_bytes: An encoded TraceConfig.
        fd: Output file for `write_into_file`; owned by the caller.
        ring_fds: Files that hold the memory of buffers, by buffer index; owned by the caller.

    Raises:
        ConfigError: The config is malformed or invalid.
        SessionError: The session conflicts with another session, or memory, a file or a permission
            is missing.
    """
    config = decode_config(config_bytes)
    _apply_lockdown(sessions, config)
    if consumer.has_session or consumer.pending_clone is not None:
        raise SessionError("This consumer has a session: free its buffers first.")
    compiled = check_config(config, has_fd=fd is not None)
    _end_less_important(sessions, config)
    now_ns = sessions.context.clock.boottime_ns()
    check_against_sessions(config, consumer.uid, sessions.all(), sessions.guarded_starts, now_ns)
    output_fd, buffers = _allocate(sessions, consumer.uid, config, fd, ring_fds)
    if config.enable_extra_guardrails:
        sessions.guarded_starts.add(config.unique_session_name, now_ns)
    return sessions.add(
        consumer,
        compiled,
        config_bytes=config_bytes,
        buffers=buffers,
        output_fd=output_fd,
        uuid=_uuid_of(sessions.context, config),
    )


def decode_config(config: bytes) -> TraceConfig:
    """Decode a config. Raises ConfigError."""
    try:
        return TraceConfig.decode(config)
    except DecodeError as error:
        raise ConfigError(f"The trace config is malformed: {error}") from error


def _apply_lockdown(sessions: SessionRegistry, config: TraceConfig) -> None:
    if config.lockdown_mode == _LOCKDOWN_SET:
        sessions.lockdown = True
    elif config.lockdown_mode == _LOCKDOWN_CLEAR:
        sessions.lockdown = False


def _end_less_important(sessions: SessionRegistry, config: TraceConfig) -> None:
    """End all other sessions if the config requests an exclusive session."""
    others = sessions.all()
    check_exclusive(config, others)
    if config.exclusive_prio:
        for session in others:
            session.abort(
                "Aborted due to user requested higher-priority "
                f"({config.exclusive_prio}) exclusive session."
            )


def _allocate(
    sessions: SessionRegistry,
    uid: int,
    config: TraceConfig,
    fd: int | None,
    ring_fds: Mapping[int, int],
) -> tuple[int | None, list[int]]:
    """Allocate the file, the buffers and the priority boost of a session, or none of them."""
    session_id = sessions.next_session_id
    if config.priority_boost is not None:
        sessions.boosts.add(session_id, config.priority_boost)
    output_fd: int | None = None
    try:
        output_fd = _open_output(sessions.context, config, fd, uid)
        return output_fd, sessions.context.buffers.create_all(config, ring_fds)
    except SessionError:
        sessions.boosts.remove(session_id)
        if output_fd is not None:
            os.close(output_fd)
        raise


def _open_output(
    context: ServiceContext, config: TraceConfig, fd: int | None, uid: int
) -> int | None:
    if not config.write_into_file:
        return None
    context.file_threads.check()
    if fd is not None:
        try:
            return os.dup(fd)
        except OSError as error:
            raise SessionError(
                f"Descriptor {fd} can't be written to ({error.strerror}): pass an open file."
            ) from error
    if uid != context.uid:
        raise SessionError(
            f"output_path is for the service's own user ({context.uid}), not for {uid}: "
            "pass a file descriptor."
        )
    from stretto.service.output.output_file import create_output_file

    return create_output_file(config.output_path)


def _uuid_of(context: ServiceContext, config: TraceConfig) -> tuple[int, int]:
    if config.trace_uuid_msb or config.trace_uuid_lsb:
        return config.trace_uuid_msb, config.trace_uuid_lsb
    return context.new_uuid()
