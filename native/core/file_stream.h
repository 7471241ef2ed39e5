/* File stream: a stream that is written out as it grows, by a function like
 * write(2).
 *
 * What was written out can't be changed, but the length of a message that is
 * still open has to be.  So slices stay in memory from the one that holds the
 * first such length on:
 *
 *   written out | slice  slice  slice | room
 *                   ^ size field of the outermost open message
 *
 * Nothing seeks: pipes and sockets will do.  Memory is bounded by the largest
 * message directly below the root.
 *
 * Life cycle: init, messages, finalize the root, st_file_stream_finish, free.
 * Once a write has failed, nothing more is written, and all bytes are
 * discarded and counted in the stream's `overflowed`.
 */
#pragma once

#include "stream_writer.h"

struct st_file_stream {
  struct st_heap_stream slices;
  /* False: failed.  Whole or not at all. */
  bool (*write)(void* self, const void* data, size_t size);
  void* self;
  bool failed;
};

void st_file_stream_init(struct st_file_stream* f, struct st_stream_writer* w,
                         bool (*write)(void*, const void*, size_t), void* self);

/* Writes out what is left.  False: not all of it has been written. */
bool st_file_stream_finish(struct st_file_stream* f,
                           struct st_stream_writer* w);

void st_file_stream_free(struct st_file_stream* f);
