/* Writer stats: how full the chunks of each writer were.
 *
 * For each (producer, writer) of a buffer a histogram of the payload sizes of
 * its complete chunks, and their sums.  Also the list of who has ever written
 * into the buffer, in the order of their first chunk.
 *
 *   bucket   0    1     2      3       ...   9        10
 *   bytes   <=8  <=32  <=128  <=512          <=16384  more
 *
 * Life cycle: all zero is an empty one; add as chunks come in; destroy.
 * Limits: the first 16384 writers; later ones aren't listed.  40 bytes for
 * each that wrote one chunk, 200 for others.
 *
 * Source: docs/formats/service.md, "Trace buffer", "Statistics" (TraceStats.writer_stats).
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

/* Most writers of a program with many short threads write one chunk. */
struct st_writer_histogram {
  uint32_t key;                   /* producer << 16 | writer */
  uint32_t hash_next;             /* index + 1 */
  uint32_t only;                  /* size of the only chunk, plus 1 */
  struct st_histogram* histogram; /* from the second chunk on */
};

struct st_writer_stats {
  struct st_writer_histogram* writers;
  uint32_t* buckets;    /* by hash of key: index + 1 */
  uint32_t count, room; /* writers; grows by a quarter: most are dead */
  uint32_t capacity;    /* buckets; doubles */
  uint32_t latest;      /* index of the last one that was added to */
};

/* Lists the writer.  NULL: out of memory, or there are too many. */
struct st_writer_histogram* st_writer_stats_find(struct st_writer_stats* s,
                                                 uint32_t key);
/* Counts one complete chunk. */
void st_writer_stats_add(struct st_writer_stats* s, uint32_t key,
                         uint32_t payload_size);
/* All that was counted for the writer. */
struct st_histogram st_writer_histogram_of(const struct st_writer_histogram* w);
/* `to` is empty.  False: out of memory. */
bool st_writer_stats_copy(struct st_writer_stats* to,
                          const struct st_writer_stats* from);
void st_writer_stats_destroy(struct st_writer_stats* s);
