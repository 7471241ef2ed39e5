/* Loss marks: mark the losses of ended writers in the trace.
 *
 * A writer that has lost packets marks the loss in its next packet
 * (trace_writer.h). A thread that ends while the shared memory is full writes
 * no further packet, so its loss would not be marked.  So the arbiter reserves
 * one chunk for each buffer that is recorded into, and marks such losses there,
 * in a sequence of its own:
 *
 *   first packet on sequence                       nothing lost so far
 *   previous_packet_dropped, timestamp             one per writer that
 *   previous_packet_dropped, timestamp             ended with a loss
 *
 * A scraper can read the reserved chunk like any other, so a mark is kept even
 * if the process is killed.  If a mark cannot be written (the chunk and the
 * shared memory are full), it is tried again with the next loss, and at close.
 * One mark then covers all losses up to it.
 *
 * Life cycle: call open for each instance of a data source, before its writers
 * are made, and close after its writers have ended.  Open installs the
 * arbiter's st_loss_marker.  Each buffer has a use count, so instances may
 * share a buffer.  Without open, or when it is out of memory, losses of ended
 * writers stay unmarked.
 *
 * Threads: one mutex, taken before the arbiter's and never while waiting for
 * chunks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "arbiter.h"

/* Reserves a chunk for the loss marks of a buffer.  Returns false when out of
 * memory or out of writer ids. */
bool st_loss_marks_open(struct st_arbiter* a, uint32_t target_buffer);
/* Ends one use of the buffer.  When the last use ends, the chunk that was
 * reserved for its loss marks is returned. */
void st_loss_marks_close(struct st_arbiter* a, uint32_t target_buffer);
