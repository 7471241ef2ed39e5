/* Writer stats: histograms of the chunk sizes of each writer.
 *
 * For each (producer, writer) of a buffer it holds a histogram of the payload
 * sizes of its complete chunks, and their sum.  It also lists all writers of
 * the buffer, in the order of their first chunks.
 *
 *   bucket   0    1     2      3       ...   9        10
 *   bytes   <=8  <=32  <=128  <=512          <=16384  more
 *
 * Life cycle: a zeroed struct is empty; add each chunk as it arrives; destroy.
 * Limits: only the first 16384 writers are listed.  A writer needs 40 bytes if
 * it wrote one chunk, otherwise 200.
 *
 * Source: docs/formats/service.md, "Trace buffer", "Statistics"
 * (TraceStats.writer_stats).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
  ST_HISTOGRAM_BUCKETS = 11,
  ST_MAX_WRITER_STATS = 16384,
};

/* The upper bounds of all buckets but the last, in bytes. */
extern const uint32_t st_histogram_thresholds[ST_HISTOGRAM_BUCKETS - 1];

struct st_histogram {
  uint64_t counts[ST_HISTOGRAM_BUCKETS];
  uint64_t sums[ST_HISTOGRAM_BUCKETS];
};

/* A writer.  Most writers, of programs with many short threads, write one
 * chunk. */
struct st_writer_histogram {
  uint32_t key; /* The sequence: producer << 16 | writer. */
  /* Index + 1 of the next writer in the hash bucket. */
  uint32_t hash_next;
  uint32_t only;                  /* The size of the only chunk, plus 1. */
  struct st_histogram* histogram; /* Used from the writer's second chunk on. */
};

struct st_writer_stats {
  struct st_writer_histogram* writers;
  uint32_t* buckets; /* A hash table of keys: index + 1 in `writers`. */
  /* Both grow by a quarter only, because most writers have ended. */
  uint32_t count, room;
  uint32_t capacity; /* Number of buckets; grows by doubling. */
  uint32_t latest;   /* The index of the writer that was added to last. */
};

/* Returns the writer's entry, a new one if needed.  NULL when out of memory, or
 * if too many writers are listed. */
struct st_writer_histogram* st_writer_stats_find(struct st_writer_stats* s,
                                                 uint32_t key);
/* Adds one complete chunk to its writer's histogram. */
void st_writer_stats_add(struct st_writer_stats* s, uint32_t key,
                         uint32_t payload_size);
/* Returns the writer's histogram and sum of chunk sizes. */
struct st_histogram st_writer_histogram_of(const struct st_writer_histogram* w);
/* Copies the statistics to `to`, which is empty.  Returns false when out of
 * memory. */
bool st_writer_stats_copy(struct st_writer_stats* to,
                          const struct st_writer_stats* from);
void st_writer_stats_destroy(struct st_writer_stats* s);
