/* Loss marks: mark the losses of ended writers in the trace.
 *
 * A writer that has lost packets marks the loss in its next packet
 * (trace_writer.h).  But a thread that ends while the shared memory is full
 * writes no further packet.  So the arbiter reserves one chunk for each buffer
 * that is recorded into.  The losses of ended writers are marked in that chunk,
 * in a sequence of its own:
 *
 *   first packet on sequence               no loss before this packet
 *   previous_packet_dropped, timestamp     a writer ended with a loss
 *   previous_packet_dropped, timestamp     another writer ended with a loss
 *
 * A scraper can read the reserved chunk like any other, so a mark is kept even
 * if the process is killed.  If a mark cannot be written (the chunk and the
 * shared memory are full), the next loss and the close try again.  That mark
 * then covers all losses since the last mark.
 *
 * Life cycle: call open for each instance of a data source, before its writers
 * are made, and close after its writers have ended. Open installs the arbiter's
 * st_loss_marker. Each buffer has a use count, so instances may share a buffer.
 * Without open, or when it is out of memory, losses of ended writers stay
 * unmarked.
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
