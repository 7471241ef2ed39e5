/* Sample gaps: the times in which no stack was sampled, as a trace tells them.
 *
 * A gap of all threads has one event.  A gap in the samples of one thread has an
 * event of its own only if the gap of all threads does not cover it: if a part
 * of it, at its begin or end, is as long as a gap.
 *
 *   all threads       |--- gap ---|
 *   thread A        |-- no sample --|          covered by the gap of all threads
 *   thread B        |-- no sample ---------|   not covered: has its own event
 *
 * So in each time of two gaps' length without a gap in the trace, a thread has
 * two samples at least, unless it does not run.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* If no stack is sampled for this long, the trace says so. */
enum { ST_SAMPLE_GAP_NS = 10000000 };

struct st_sample_gaps {
  uint64_t least; /* The length of the shortest gap, in ns. */
  /* The last gap of all threads; gaps that follow each other are one. */
  uint64_t begin, end;
};

/* Adds a gap of all threads.  Gaps are added in the order of time. */
void st_sample_gaps_add(struct st_sample_gaps* gaps, uint64_t begin,
                        uint64_t end);
/* Returns whether the time from `begin` to `end`, in which a thread had no
 * sample, is a gap that has to be told. */
bool st_sample_gaps_tell(const struct st_sample_gaps* gaps, uint64_t begin,
                         uint64_t end);
