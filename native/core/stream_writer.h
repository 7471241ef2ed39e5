/* Scattered stream writer: one stream of bytes over many buffers.
 *
 * The writer is three pointers.  A write that fits before `end` is a copy.  If
 * it does not fit, the delegate provides the next buffer.  The stream never
 * returns to an earlier buffer, so buffers can be chunks of shared memory,
 * slices of a heap, or one fixed array.
 *
 *   begin          cur                 end
 *   |== written ==|........ room ......|      new_buffer() replaces all three
 *
 * Limits: new_buffer must provide at least ST_MIN_BUFFER bytes, or set begin =
 * cur = end = NULL if there is no more room: from then on writes are discarded
 * and counted in `overflowed`. A stream ends after ST_MAX_MESSAGE_SIZE bytes: a
 * buffer that would exceed that is cut there.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire.h"

enum { ST_MIN_BUFFER = 16 };

struct st_stream_writer;

struct st_stream_delegate {
  /* Replaces begin, cur and end of w by a new buffer.  The bytes of the old
   * buffer stay valid. */
  void (*new_buffer)(void* self, struct st_stream_writer* w);
  /* Called for each open message when the current buffer is about to be left:
   * the four bytes at size_field, in this buffer, will be written later.
   * Returns where to write them instead (a patch), size_field itself if the
   * memory stays valid, or NULL to drop them. */
  uint8_t* (*redirect_size_field)(void* self, uint8_t* size_field);
};

/* An open message.  The stream tracks its size field from buffer to buffer.
 * The functions are in message.h. */
struct st_message {
  struct st_stream_writer* stream;
  struct st_message* parent; /* The enclosing message; NULL for a root. */
  struct st_message* child;  /* The open nested message, or NULL. */
  /* The reserved bytes for the length; NULL for a root, or if their buffer is
   * no longer accessible. */
  uint8_t* size_field;
  uint32_t size; /* Size of the payload so far, with nested headers. */
  bool finalized;
  uint32_t misuse;
};

struct st_stream_writer {
  uint8_t* begin;
  uint8_t* cur;
  uint8_t* end;
  uint64_t written_before; /* Number of bytes in earlier buffers. */
  uint64_t overflowed;
  struct st_message* innermost; /* List of open messages, innermost first. */
  const struct st_stream_delegate* delegate;
  void* self;
};

void st_stream_init(struct st_stream_writer* w,
                    const struct st_stream_delegate* delegate, void* self);

/* Returns the number of bytes written so far. */
static inline uint64_t st_stream_written(const struct st_stream_writer* w) {
  return w->written_before + (uint64_t)(w->cur - w->begin);
}

/* Ends the current buffer; the delegate provides the next one. */
void st_stream_extend(struct st_stream_writer* w);

void st_stream_write_slow(struct st_stream_writer* w, const void* data,
                          size_t size);

static inline void st_stream_write(struct st_stream_writer* w, const void* data,
                                   size_t size) {
  if ((size_t)(w->end - w->cur) < size) {
    st_stream_write_slow(w, data, size);
    return;
  }
  memcpy(w->cur, data, size);
  w->cur += size;
}

/* Reserves n <= ST_MIN_BUFFER contiguous bytes, in the next buffer if needed.
 * Returns NULL when no buffer has room. */
uint8_t* st_stream_reserve(struct st_stream_writer* w, size_t n);

/* --- delegates over plain memory --- */

/* Makes a stream into one array, which the caller owns. */
void st_stream_init_fixed(struct st_stream_writer* w, void* buffer,
                          size_t size);

/* A stream into a growing heap: a chain of slices, each twice as large as the
 * one before, up to 128 KiB. */
struct st_heap_slice {
  struct st_heap_slice* next;
  size_t used, capacity;
  uint8_t bytes[];
};
struct st_heap_stream {
  struct st_heap_slice* first;
  struct st_heap_slice* last;
};
enum { ST_FIRST_SLICE = 128 };
/* Starts a new stream in the first slice of an old one, and frees its other
 * slices.  Allocates a slice of `capacity` bytes if there is none. */
void st_stream_reset_heap(struct st_stream_writer* w,
                          struct st_heap_stream* heap, size_t first_capacity);
/* Adds one slice to the stream's chain.  Returns NULL when out of memory. */
struct st_heap_slice* st_heap_stream_add(struct st_heap_stream* heap,
                                         size_t capacity);
size_t st_heap_stream_size(const struct st_heap_stream* heap,
                           const struct st_stream_writer* w);
/* Copies the bytes of all slices, in order, to `out`. */
void st_heap_stream_copy(const struct st_heap_stream* heap,
                         const struct st_stream_writer* w, uint8_t* out);
void st_heap_stream_free(struct st_heap_stream* heap);
