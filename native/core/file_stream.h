/* File stream: writes a stream to a file while the stream grows, by a function
 * like write(2).
 *
 * Written bytes cannot be changed, but the length of an open message is filled
 * in later.  So the slices from the first open length on stay in memory:
 *
 *   written out | slice  slice  slice | room
 *                   ^ size field of the outermost open message
 *
 * The file is never sought, so it may be a pipe or a socket.  Memory is bounded
 * by the largest message directly below the root.
 *
 * Life cycle: init, write messages, finalize the root, st_file_stream_finish,
 * free.  After a failed write all further bytes are discarded and counted in
 * the stream's `overflowed`.
 */
#pragma once

#include "stream_writer.h"

struct st_file_stream {
  struct st_heap_stream slices;
  /* Writes all `size` bytes to the file.  Returns false if the write failed. */
  bool (*write)(void* self, const void* data, size_t size);
  void* self;
  bool failed;
};

void st_file_stream_init(struct st_file_stream* f, struct st_stream_writer* w,
                         bool (*write)(void*, const void*, size_t), void* self);

/* Writes the bytes of the stream that are still in memory.  Returns false if
 * some bytes could not be written. */
bool st_file_stream_finish(struct st_file_stream* f,
                           struct st_stream_writer* w);

void st_file_stream_free(struct st_file_stream* f);
