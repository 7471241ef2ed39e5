/* Loss marks: losses of writers that have ended.
 *
 * A writer that has lost packets marks the loss in its next one
 * (trace_writer.h).  A thread that ends while the shared memory is full writes
 * no further packet, and the trace would not show its loss.  So for each buffer
 * that is recorded into, the arbiter keeps one chunk back, taken before it is
 * needed, and a sequence of its own, in which such losses are marked:
 *
 *   first packet on sequence                       nothing lost so far
 *   previous_packet_dropped, timestamp             one per writer that
 *   previous_packet_dropped, timestamp             ended with a loss
 *
 * The chunk is visible to a scraper like any other, so a mark outlives the
 * process.  A mark that finds no room (the chunk is full, and so is the memory)
 * waits for the next one, or for the close, and stands for all that waited.
 *
 * Life cycle: open for each instance of a data source, before its writers; it
 * becomes the arbiter's st_loss_marker.  Close after the writers.  Buffers are
 * counted, so instances may share one.  Without open, or without memory for it,
 * losses of ended writers stay unmarked.
 *
 * Threads: one mutex, taken before the arbiter's and never while waiting for
 * chunks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "arbiter.h"

/* False: no memory, or no writer id. */
bool st_loss_marks_open(struct st_arbiter* a, uint32_t target_buffer);
/* Returns the chunk with the last user of the buffer. */
void st_loss_marks_close(struct st_arbiter* a, uint32_t target_buffer);
