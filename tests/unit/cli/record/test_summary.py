from __future__ import annotations

import pytest

from stretto.cli.record.summary import kept_text, losses, plural, size_text, summary, whereabouts
from stretto.protos.trace import TraceStats
from stretto.recorder.host.contents import Contents


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [(1, "event", "1 event"), (0, "process", "0 processes"), (12345, "event", "12,345 events")],
)
def test_counts_other_than_1_have_a_plural_noun(count, noun, text):
    assert plural(count, noun) == text


@pytest.mark.parametrize(
    ("size", "text"), [(12, "12 bytes"), (2048, "2.0 KiB"), (3 << 19, "1.5 MiB")]
)
def test_size_text_contains_the_unit(size, text):
    assert size_text(size) == text


def test_summary_has_no_loss_lines_without_losses():
    stats = TraceStats(buffer_stats=[TraceStats.BufferStats()])
    assert losses(Contents(), stats, streamed=False) == []


def test_each_kind_of_loss_has_a_line():
    contents = Contents()
    contents.drops = 2
    buffer = TraceStats.BufferStats(
        bytes_overwritten=1 << 20, trace_writer_packet_loss=3, chunks_discarded=4, abi_violations=5
    )
    stats = TraceStats(buffer_stats=[buffer], invalid_packets=6)
    lines = losses(contents, stats, streamed=True)
    assert [line.split()[0] for line in lines] == ["2", "1.0", "3", "4", "5", "6"]
    assert "1.0 MiB" in lines[1]


def test_refused_chunks_of_a_ring_are_no_further_loss():
    """They are older than what the ring has overwritten."""
    stats = TraceStats(buffer_stats=[TraceStats.BufferStats(chunks_discarded=4)])
    assert losses(None, stats, streamed=False) == []


def test_a_larger_buffer_is_advised_only_for_ring_buffers():
    stats = TraceStats(buffer_stats=[TraceStats.BufferStats(bytes_overwritten=2048)])
    (ring,) = losses(None, stats, streamed=False)
    (file,) = losses(None, stats, streamed=True)
    for word, in_ring, in_file in (
        ("2.0 KiB", True, True),
        ("--buffer", True, False),
        ("--full", True, False),
    ):
        assert (word in ring) is in_ring
        assert (word in file) is in_file


def test_losses_of_a_file_advise_only_options_that_every_detail_has():
    contents = Contents()
    contents.drops = 1
    buffer = TraceStats.BufferStats(bytes_overwritten=2048, chunks_discarded=1)
    lines = losses(contents, TraceStats(buffer_stats=[buffer]), streamed=True)
    assert all("--exclude" in line for line in lines)
    assert not any("--min-duration" in line for line in lines)


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (1, ["1 packet was", "1 chunk of events was missing", "1 chunk was", "1 packet was"]),
        (
            2,
            [
                "2 packets were",
                "2 chunks of events were missing",
                "2 chunks were",
                "2 packets were",
            ],
        ),
    ],
)
def test_losses_have_singular_and_plural_words(count, words):
    buffer = TraceStats.BufferStats(
        trace_writer_packet_loss=count, chunks_discarded=count, abi_violations=count
    )
    stats = TraceStats(buffer_stats=[buffer], invalid_packets=count)
    lines = losses(None, stats, streamed=True)
    assert [line[: len(word)] for line, word in zip(lines, words, strict=True)] == words


def test_summary_contains_counts_and_at_most_ten_reasons():
    contents = Contents()
    contents.events, contents.processes, contents.threads = 5, {1}, {(1, 1), (1, 2)}
    text = summary(contents, TraceStats(), [f"{n}: reason" for n in range(12)], streamed=False)
    assert text.startswith("stretto: 5 events, 1 process, 2 threads\n")
    assert "not followed: 0: reason" in text
    assert "and 2 more" in text
    assert summary(None, TraceStats(), [], streamed=True) == "stretto: done"


def test_what_an_option_left_out_is_not_called_not_followed() -> None:
    reasons = ["7: left out: 84 calls shorter than 1000 us (--min-duration)", "8: it had -I"]
    text = summary(None, TraceStats(), reasons, streamed=False)
    assert text.splitlines()[1:] == [
        "  not followed: 8: it had -I",
        "  left out: 7: 84 calls shorter than 1000 us (--min-duration)",
    ]


def test_last_line_contains_file_size_duration_and_viewer():
    assert "out.pftrace, 2.0 KiB, 1.5 s" in whereabouts("out.pftrace", 2048, 1.5)
    assert "https://ui.perfetto.dev" in whereabouts("out.pftrace", 2048, 1.5)
    assert "stretto view 'a b.pftrace'" in whereabouts("a b.pftrace", 2048, 1.5)
    assert "pipe" in whereabouts("", 0, 1.5)


def test_summary_says_how_many_seconds_a_ring_has_kept() -> None:
    assert kept_text(8 * 10**9, 11 * 10**9, 11.3) == "kept the last 3.0 of 11.3 s, "


def test_summary_of_a_ring_without_events_has_no_number_of_kept_seconds() -> None:
    assert kept_text((1 << 64) - 1, 11 * 10**9, 11.25) == ""
