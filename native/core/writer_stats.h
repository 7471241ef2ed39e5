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

/* Upper bounds of all buckets but the last. */
extern const uint32_t st_histogram_thresholds[ST_HISTOGRAM_BUCKETS - 1];

struct st_histogram {
  uint64_t counts[ST_HISTOGRAM_BUCKETS];
  uint64_t sums[ST_HISTOGRAM_BUCKETS];
};

/* A writer.  Most writers, of programs with many short threads, write one
 * chunk. */
struct st_writer_histogram {
  uint32_t key; /* producer << 16 | writer */
  /* next writer in the hash bucket: index + 1 */
  uint32_t hash_next;
  uint32_t only;                  /* size of the only chunk, plus 1 */
  struct st_histogram* histogram; /* used from the second chunk on */
};

struct st_writer_stats {
  struct st_writer_histogram* writers;
  uint32_t* buckets; /* hash table of keys: index + 1 in `writers` */
  /* grows by a quarter, because most writers have ended */
  uint32_t count, room;
  uint32_t capacity; /* doubles */
  uint32_t latest;   /* index of the writer added to last */
};

/* Lists the writer.  Returns false when out of memory, or if there are too
 * many. */
struct st_writer_histogram* st_writer_stats_find(struct st_writer_stats* s,
                                                 uint32_t key);
/* Counts one complete chunk. */
void st_writer_stats_add(struct st_writer_stats* s, uint32_t key,
                         uint32_t payload_size);
/* Returns all counters of the writer. */
struct st_histogram st_writer_histogram_of(const struct st_writer_histogram* w);
/* Copies the statistics; `to` is empty.  Returns false when out of memory. */
bool st_writer_stats_copy(struct st_writer_stats* to,
                          const struct st_writer_stats* from);
void st_writer_stats_destroy(struct st_writer_stats* s);
