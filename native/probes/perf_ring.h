/* Perf ring: the ring buffer of an event, which the kernel fills.
 *
 *   page 0    head (written by the kernel), tail (written by the reader)
 *   pages 1…  a power of two of pages with records; positions are taken modulo
 *             this size, and never decrease
 *
 * A record may wrap around the end.  The reader copies whole records, then moves
 * the tail behind them: only the copy is parsed (perf_record.h).
 *
 *   struct st_perf_ring ring;
 *   if (st_perf_ring_map(&ring, fd, pages)) {
 *     size = st_perf_ring_copy(&ring, out, capacity, &samples);
 *     st_perf_ring_unmap(&ring);
 *   }
 *
 * Source: perf_event_open(2), "MMAP layout".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perf_event_mmap_page;

struct st_perf_ring {
  struct perf_event_mmap_page* page;
  const uint8_t* data;
  size_t size; /* Of the data, in bytes. */
  /* How often records could not be followed, so that all in the buffer were
   * dropped. */
  uint64_t damaged;
};

/* Maps the buffer of an event.  `pages` is a power of two.  Returns false with
 * errno set on failure. */
bool st_perf_ring_map(struct st_perf_ring* r, int fd, size_t pages);
void st_perf_ring_unmap(struct st_perf_ring* r);

/* Moves whole records to `out`: as many as fit into it, and at most
 * *max_samples samples, which is reduced by their number.  Returns the size of
 * the records. */
size_t st_perf_ring_copy(struct st_perf_ring* r, uint8_t* out, size_t capacity,
                         uint32_t* max_samples);
