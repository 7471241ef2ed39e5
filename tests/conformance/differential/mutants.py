"""Deliberate mistakes in Stretto's service, each of which the differential fuzzing must find."""

from __future__ import annotations

from typing import NamedTuple


class Mutant(NamedTuple):
    """A deliberate mistake: a text in a source file, and the text that replaces it."""

    name: str
    file: str
    text: str
    mistake: str


MUTANTS = (
    Mutant(
        "an aborted packet is not counted",
        "native/core/trace_buffer_write.c",
        "  if (f->broken == ST_RECORD_ABORTED)\n    note_abort(b, s);\n",
        "",
    ),
    Mutant(
        "patches of one request count once",
        "native/core/trace_buffer_write.c",
        "patches_succeeded += count;",
        "patches_succeeded += 1;",
    ),
    Mutant(
        "a scraped chunk gets no room to grow",
        "native/core/trace_buffer_write.c",
        "ST_RECORD_HEADER + (c->complete ? f->end : (uint32_t)c->payload_size);\n"
        "  if (!st_index_reserve",
        "ST_RECORD_HEADER + f->end;\n  if (!st_index_reserve",
    ),
    Mutant(
        "an evicted chunk comes back though it has nothing new",
        "native/core/trace_buffer_write.c",
        "f->end <= s->last_end",
        "f->end < s->last_end",
    ),
    Mutant(
        "a packet is put together before its patch came",
        "native/core/trace_buffer_chain.c",
        "  if (r->flags & ST_CHUNK_NEEDS_PATCHING)\n    return false;\n",
        "",
    ),
    Mutant(
        "a packet that was begun is forgotten when its first chunk is evicted",
        "native/core/trace_buffer_evict.c",
        "  if (!st_nothing_left(r))\n    evict_chain(b, s, gap);\n",
        "  (void)gap;\n  (void)evict_chain;\n",
    ),
    Mutant(
        "bytes that were never written count as padding",
        "native/core/trace_buffer_evict.c",
        "b->pad_ahead = virgin ? 0 : (uint32_t)(st_free_bytes(b) - size);",
        "b->pad_ahead = (uint32_t)(st_free_bytes(b) - size);\n  (void)virgin;",
    ),
    Mutant(
        "missing chunks are not marked",
        "native/core/trace_buffer_read.c",
        "    st_sequence_note_gap(x, s);\n",
        "",
    ),
    Mutant(
        "a writer may write to a buffer that it isn't registered for",
        "native/core/producer_endpoint.c",
        "is_allowed(e, target) && (!registered || registered == target + 1u);",
        "is_allowed(e, target) || (registered && !target);",
    ),
    Mutant(
        "a producer may write the machine's id",
        "native/core/readback.c",
        "1ull << (98 - 64) |",
        "",
    ),
    Mutant(
        "a flush does not scrape",
        "src/stretto/service/session/flush.py",
        "            session.scrape()\n",
        "            pass\n",
    ),
    Mutant(
        "a disconnected producer is still connected in the statistics",
        "src/stretto/service/output/trace_stats.py",
        "(2, counts.producers_connected)",
        "(2, counts.producers_seen)",
    ),
)
