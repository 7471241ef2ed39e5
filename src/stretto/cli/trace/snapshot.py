"""Copies of running sessions: --clone, bug reports, and sessions that triggers clone."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

from stretto.cli.trace.source_reports import SourceReports
from stretto.protos.ipc import CloneSessionRequest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stretto.cli.trace.consumer import TraceConsumer
    from stretto.cli.trace.output import TraceOutput
    from stretto.protos.ipc import CloneSessionResponse, ObservableEvents
    from stretto.protos.trace import TracingServiceState

BUGREPORT_SESSION_ID = (1 << 64) - 1
"""Selects the session with the highest bugreport_score."""
BUGREPORT_FILE = "systrace.pftrace"


def session_number(number: int) -> int:
    """Return a session's id as an unsigned number; -1 selects the session for bug reports."""
    return number & (1 << 64) - 1


class Snapshot:
    """A copy of one session, made by a separate consumer.

    Args:
        consumer: a connected consumer; owned by this object from now on.
        request: the request that selects the session.
        output: the output file; owned by this object from now on.
    """

    def __init__(
        self, consumer: TraceConsumer, request: CloneSessionRequest, output: TraceOutput
    ) -> None:
        self._consumer = consumer
        self._request = request
        self._output = output
        self._answer: CloneSessionResponse | None = None
        self._reports = SourceReports()

    def take(self) -> None:
        """Clone the session. The session itself continues.

        Raises:
            CommandError: the service doesn't reply.
        """
        self._answer = self._consumer.clone(self._request, self._output.fd)

    def save(self) -> list[str]:
        """Write the copy into the file, unless the service has written it.

        Returns:
            Messages for the user: the size of the copy, and what its data sources tell; or the
            service's reason for refusing it. A refusal isn't an error of the command.

        Raises:
            CommandError: the copy can't be read or written.
        """
        answer = self._answer
        if answer is None or not answer.success:
            reason = "" if answer is None else answer.error
            source = self._source_text()
            return [f"Service error: Failed to clone tracing session {source}: {reason}"]
        if answer.was_write_into_file:
            self._output.read_again(self._reports)
        else:
            self._output.watch = self._reports.add
            self._consumer.read_into(self._output)
        size = f"Wrote {self._output.size} bytes into {self._output.name}"
        return [size, *(f"Note: {line}" for line in self._reports.lines())]

    def _source_text(self) -> str:
        name = self._request.unique_session_name
        return f'"{name}"' if name else str(self._request.session_id)

    def close(self) -> None:
        """Disconnect, and close the file. Remove the file if it is empty."""
        self._consumer.close()
        self._output.remove_if_empty()
        self._output.close()


def triggered_request(hit: ObservableEvents.CloneTriggerHit) -> CloneSessionRequest:
    """Return the request for a copy after a trigger."""
    return CloneSessionRequest(
        session_id=hit.tracing_session_id,
        clone_trigger_name=hit.trigger_name,
        clone_trigger_producer_name=hit.producer_name,
        clone_trigger_trusted_producer_uid=hit.producer_uid,
        clone_trigger_boot_time_ns=hit.boot_time_ns,
        clone_trigger_delay_ms=hit.trigger_delay_ms,
    )


def bugreport_request(session_id: int = BUGREPORT_SESSION_ID) -> CloneSessionRequest:
    """Return the request for a bug report's copy of a session. The copy is not filtered."""
    return CloneSessionRequest(session_id=session_id, skip_trace_filter=True, for_bugreport=True)


def bugreport_requests(state: TracingServiceState) -> list[tuple[CloneSessionRequest, str]]:
    """Return, for each session with a bug report score, the request for a copy and its path.

    The session with the best score is the first.
    """
    scored = [
        each for each in state.tracing_sessions if each.is_started and each.bugreport_score > 0
    ]
    scored.sort(key=lambda each: -each.bugreport_score)
    names = distinct_names(each.bugreport_filename or BUGREPORT_FILE for each in scored)
    return [
        (bugreport_request(each.id), os.path.join(folder(), name))
        for each, name in zip(scored, names, strict=True)
    ]


def folder() -> str:
    """Return the folder into which traces for bug reports are copied."""
    return tempfile.gettempdir()


def bugreport_path() -> str:
    """Return the path for the copy of the session with the highest score."""
    return os.path.join(folder(), BUGREPORT_FILE)


def distinct_names(names: Iterable[str]) -> list[str]:
    """Return distinct file names: repeated names get `_1`, `_2` before the last dot.

    Folders in the names are dropped, so that a session can't choose a file in another folder.
    """
    distinct: list[str] = []
    for name in map(os.path.basename, names):
        stem, ending = os.path.splitext(name)
        candidates = (f"{stem}_{count}{ending}" for count in range(1, len(distinct) + 2))
        distinct.append(next(c for c in (name, *candidates) if c not in distinct))
    return distinct
