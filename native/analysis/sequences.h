/* Sequences: the incremental state of the packets of one writer.
 *
 * A sequence begins without valid state.  A packet that clears the state starts
 * a generation: an empty table of interned messages, and no defaults.  New
 * defaults start a generation with the same interned messages.  An event keeps
 * the number of its generation, because it is parsed after later packets have
 * been read.
 *
 *   clear            defaults            clear
 *   generation 0 ──> generation 1 ────> generation 2
 *   interned A       interned A          interned B
 *
 * Equal ids in several sources (files of an archive, or machines) are different
 * sequences.
 */
#pragma once

#include "core/decoder.h"
#include "storage.h"

struct st_interned {
  const uint8_t* data;
  uint32_t size;
  st_string text; /* The message's field 2; 0 until it is read. */
};

struct st_interning {
  struct st_map index; /* By field and iid; entry + 1. */
  ST_ARRAY(struct st_interned) entries;
};

struct st_defaults {
  uint64_t track_uuid;
  uint64_t clock;
  uint64_t counter_uuids[8], double_uuids[8];
  uint8_t counter_count, double_count;
  struct st_field perf; /* PerfSampleDefaults. */
};

struct st_generation {
  uint32_t sequence; /* Index. */
  uint32_t interning;
  struct st_defaults defaults;
  struct st_map sums; /* Incremental counters by uuid: index + 1 in `values`. */
  ST_ARRAY(double) values;
};

struct st_sequence {
  uint32_t id;
  bool is_valid, has_thread, has_packets;
  int64_t pid, tid;
  uint64_t thread_time; /* In ns: legacy timestamps are differences to it. */
  uint32_t generation;
  uint64_t losses, needing, skipped;
};

struct st_sequences {
  struct st_byte_arena* arena;
  struct st_string_pool* strings;
  ST_ARRAY(struct st_sequence) sequences;
  ST_ARRAY(struct st_generation) generations;
  ST_ARRAY(struct st_interning) internings;
  struct st_map by_id; /* By source and id: index + 1. */
  uint32_t source;     /* The number of the source that is being read. */
  uint64_t failed_lookups;
};

void st_sequences_init(struct st_sequences* s, struct st_byte_arena* arena,
                       struct st_string_pool* strings);
/* Returns the index of the sequence, which is added if it is new. */
uint32_t st_sequence_get(struct st_sequences* s, uint32_t id);
void st_sequence_clear(struct st_sequences* s, uint32_t index);
void st_sequence_set_defaults(struct st_sequences* s, uint32_t index,
                              const uint8_t* data, size_t size);
void st_sequence_intern(struct st_sequences* s, uint32_t index,
                        const uint8_t* data, size_t size);
/* Returns an interned message.  If it is missing, counts a failure and returns
 * NULL. */
const struct st_interned* st_interned_find(struct st_sequences* s,
                                           uint32_t generation, uint32_t field,
                                           uint64_t iid);
/* Returns the text of an interned string; 0 if it is missing. */
st_string st_interned_text(struct st_sequences* s, uint32_t generation,
                           uint32_t field, uint64_t iid);
/* Returns the id of the generation's sequence. */
static inline uint32_t st_sequences_id(const struct st_sequences* s,
                                       uint32_t generation) {
  return s->sequences.data[s->generations.data[generation].sequence].id;
}
/* Adds to an incremental counter of the generation.  Returns the sum. */
double st_sequence_sum(struct st_sequences* s, uint32_t generation,
                       uint64_t uuid, double difference);
void st_sequences_free(struct st_sequences* s);
