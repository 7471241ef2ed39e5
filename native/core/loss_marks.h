/* Loss marks: what a writer that died could not say.
 *
 * A writer that has lost packets says so in its next one (trace_writer.h).  A
 * thread that ends while the shared memory is full has no next one: without
 * help its loss would leave no trace in the trace.  So for each buffer that is
 * recorded into the arbiter keeps one chunk back, taken before there is need,
 * and a sequence of its own, in which the dead are remembered:
 *
 *   first packet on sequence                       nothing lost so far
 *   previous_packet_dropped, timestamp             one per writer ...
 *   previous_packet_dropped, timestamp             ... that died in debt
 *
 * The chunk is visible to a scraper like any other, so a mark outlives the
 * process.  A mark that finds no room (the chunk is full, and so is the memory)
 * waits for the next one, or for the end, and stands for all that waited.
 *
 * Life cycle: open for each instance of a data source, before its writers;
 * close behind them.  Buffers are counted, so instances may share one.  Without
 * open, or memory for it, dead writers' losses stay unmarked.
 *
 * One mutex, taken before the arbiter's and never while waiting for chunks.
 */
#ifndef STRETTO_CORE_LOSS_MARKS_H_
#define STRETTO_CORE_LOSS_MARKS_H_

#include <stdbool.h>
#include <stdint.h>

#include "arbiter.h"

/* False: no memory, or no writer id. */
bool st_loss_marks_open(struct st_arbiter* a, uint32_t target_buffer);
/* Returns the chunk with the last user of the buffer. */
void st_loss_marks_close(struct st_arbiter* a, uint32_t target_buffer);
/* A writer of this buffer ends, and owes the mark of a loss. */
void st_loss_marks_add(struct st_arbiter* a, uint32_t target_buffer);

/* Frees what was never closed; writes nothing. */
void st_loss_marks_destroy(struct st_arbiter* a);

#endif /* STRETTO_CORE_LOSS_MARKS_H_ */
