/* Writer stats: histograms of the chunk sizes of each writer.
 *
 * For each (producer, writer) of a buffer it holds a histogram of the payload
 * sizes of the writer's complete chunks, and the sum of these sizes.  It also
 * lists all writers of the buffer, in the order of their first chunks.
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

/* The largest chunk size in bytes of each bucket but the last. */
extern const uint32_t st_histogram_thresholds[ST_HISTOGRAM_BUCKETS - 1];

struct st_histogram {
  uint64_t counts[ST_HISTOGRAM_BUCKETS];
  uint64_t sums[ST_HISTOGRAM_BUCKETS];
};

/* The histogram of one writer.  In programs with many short threads most
 * writers write one chunk. */
struct st_writer_histogram {
  uint32_t key; /* The key of the writer: producer << 16 | writer. */
  /* Index + 1 of the next writer in the same hash bucket. */
  uint32_t hash_next;
  /* The size of the writer's first chunk, plus 1; 0 before that chunk. */
  uint32_t only;
  /* The writer's histogram; NULL before its second chunk. */
  struct st_histogram* histogram;
};

struct st_writer_stats {
  struct st_writer_histogram* writers;
  /* A hash table from keys to writers: each entry is an index in `writers`,
   * plus 1. */
  uint32_t* buckets;
  /* The number of writers, and the capacity of `writers`.  The capacity grows
   * by a quarter only, to save memory: most listed writers have ended. */
  uint32_t count, room;
  uint32_t capacity; /* The number of hash buckets, which grows by doubling. */
  uint32_t latest;   /* The index of the writer whose chunk was added last. */
};

/* Returns the entry of the writer with this key.  Adds the entry if there is
 * none.  Returns NULL when out of memory, or if too many writers are listed. */
struct st_writer_histogram* st_writer_stats_find(struct st_writer_stats* s,
                                                 uint32_t key);
/* Adds one complete chunk to the histogram of its writer. */
void st_writer_stats_add(struct st_writer_stats* s, uint32_t key,
                         uint32_t payload_size);
/* Returns the histogram of the sizes of a writer's chunks. */
struct st_histogram st_writer_histogram_of(const struct st_writer_histogram* w);
/* Copies the statistics to `to`, which is empty.  Returns false when out of
 * memory. */
bool st_writer_stats_copy(struct st_writer_stats* to,
                          const struct st_writer_stats* from);
void st_writer_stats_destroy(struct st_writer_stats* s);
