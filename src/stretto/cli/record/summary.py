"""The summary of a recording: contents of the trace, losses, path of the file."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from stretto.protos.trace import TraceStats
    from stretto.recorder.host.contents import Contents

LEFT_OUT = "left out: "
"""Marks the reasons for missing events that are no problem: an option or a limit left them out."""
FEWER_EVENTS = "(--exclude leaves out functions, so that there are fewer events)"
"""The advice for too many events. It holds for every detail, unlike `--min-duration`."""
TOO_LATE = f"missing: later events of the same thread were already in the file {FEWER_EVENTS}"
"""What happened to chunks that a streamed buffer refused."""
MAX_LINES = 10
"""The largest number of lines per title; further ones are only counted."""


def plural(count: int, noun: str) -> str:
    """Format a count: `3 threads`, `1 process`."""
    ending = "" if count == 1 else "es" if noun.endswith("s") else "s"
    return f"{count:,} {noun}{ending}"


def and_more(count: int, limit: int, noun: str) -> str:
    """Return a line that says how many things a limit leaves out; "" if none."""
    return f"and {plural(count - limit, noun)} more\n" if count > limit else ""


def size_text(count: int) -> str:
    """Format a number of bytes: `12 bytes`, `2.0 KiB`, `1.5 MiB`."""
    if count < 1 << 20:
        return f"{count / 1024:.1f} KiB" if count >= 1024 else f"{count} bytes"
    return f"{count / (1 << 20):.1f} MiB"


def _overwritten(count: int, kept: str, *, streamed: bool) -> str:
    if streamed:
        return (
            f"{size_text(count)} of events were overwritten before they were written to the file, "
            f"and are missing {FEWER_EVENTS}"
        )
    return (
        f"the ring wrapped: {kept}the oldest {size_text(count)} were overwritten "
        "(a larger --buffer keeps more, --full all)"
    )


def _counted(count: int, noun: str, text: str) -> str:
    first, *rest = noun.split(" ", 1)
    return " ".join([plural(count, first), *rest, "was" if count == 1 else "were", text])


def kept_text(first_ns: int, end_ns: int, seconds: float) -> str:
    """Format which part of the recording is in the ring, from `first_ns` to `end_ns`."""
    kept = (end_ns - first_ns) / 1e9
    return f"kept the last {kept:.1f} of {seconds:.1f} s, " if 0 <= kept < seconds else ""


def losses(
    contents: Contents | None, stats: TraceStats, kept: str = "", *, streamed: bool
) -> list[str]:
    """Return a line for each reason of missing data in the trace."""
    lines = []
    if contents and contents.drops:
        lines.append(
            f"{plural(contents.drops, 'gap')}: the program wrote faster than could be collected "
            f"{FEWER_EVENTS}"
        )
    buffers = stats.buffer_stats
    if overwritten := sum(buffer.bytes_overwritten for buffer in buffers):
        lines.append(_overwritten(overwritten, kept, streamed=streamed))
    # A ring refuses chunks that are older than those it has overwritten, such as the chunk of an
    # idle thread: they are part of what was overwritten.
    too_late = sum(buffer.chunks_discarded for buffer in buffers) if streamed else 0
    for count, noun, text in (
        (sum(buffer.trace_writer_packet_loss for buffer in buffers), "packet", "cut short"),
        (too_late, "chunk of events", TOO_LATE),
        (sum(buffer.abi_violations for buffer in buffers), "chunk", "malformed"),
        (stats.invalid_packets, "packet", "invalid"),
    ):
        if count:
            lines.append(_counted(count, noun, text))
    return lines


def _list(title: str, lines: Iterable[str]) -> list[str]:
    lines = list(lines)
    shown = [f"  {title}: {line}" for line in lines[:MAX_LINES]]
    if len(lines) > MAX_LINES:
        shown.append(f"  {title}: and {len(lines) - MAX_LINES} more")
    return shown


def _missing(lines: Iterable[str]) -> list[str]:
    """Return the lines about what isn't in the trace, with what was left out on purpose last."""
    lines = list(lines)
    left_out = [line.replace(LEFT_OUT, "", 1) for line in lines if LEFT_OUT in line]
    return _list("not followed", (line for line in lines if LEFT_OUT not in line)) + _list(
        "left out", left_out
    )


def _counts(contents: Contents) -> str:
    found = [(contents.events, "event"), *contents.others]
    counts = [plural(*each) for each in found if each[0]] or ["0 events"]
    processes = plural(len(contents.processes), "process")
    return ", ".join([*counts, processes, plural(len(contents.threads), "thread")])


def summary(
    contents: Contents | None,
    stats: TraceStats,
    not_followed: Iterable[str],
    kept: str = "",
    *,
    streamed: bool,
    saved: bool = True,
    lost: Iterable[str] = (),
) -> str:
    """Format the contents and the losses of the trace.

    Args:
        contents: the counted contents; None if they couldn't be counted.
        stats: the last statistics of the service.
        not_followed: a line for each process that isn't in the trace, and for what was left out.
        kept: which part of the recording a ring has kept, see `kept_text`.
        streamed: whether the trace was written while the program ran; else it was kept in a ring.
        saved: whether there is a trace; an error message has said why not.
        lost: more lines about what is missing.
    """
    counts = _counts(contents) if contents else "done"
    lines = [f"stretto: {counts if saved else 'no complete trace was written'}"]
    lines += _list("lost", [*losses(contents, stats, kept, streamed=streamed), *lost])
    lines += _missing(not_followed)
    return "\n".join(lines)


def whereabouts(path: str, size: int, seconds: float) -> str:
    """Format the path of the trace, and how to view it.

    Args:
        path: the path of the trace; "" for a pipe.
        size: the size of the trace, in bytes.
        seconds: the time from the start of the recording to its end.
    """
    if not path:
        return f"  trace: {seconds:.1f} s, written to the pipe"
    return (
        f"  trace: {path}, {size_text(size)}, {seconds:.1f} s\n"
        f"  to look at it: stretto view {_quoted(path)}, or https://ui.perfetto.dev"
    )


def _quoted(path: str) -> str:
    """Return the path as a word of a shell's command line."""
    if path.isascii() and path.replace("/", "").replace(".", "").replace("-", "").isidentifier():
        return path
    from shlex import quote  # Importing the module takes 5 ms, which most paths don't need.

    return quote(path)
