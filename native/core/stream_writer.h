/* Scattered stream writer: one stream of bytes over many buffers.
 *
 * The writer is three pointers.  As long as a write fits before `end` it is a
 * copy; where it doesn't, the delegate hands out the next buffer.  The stream
 * never goes back, so the buffers can be chunks of shared memory, slices of a
 * heap, or one fixed array.
 *
 *   begin          cur                 end
 *   |== written ==|........ room ......|      new_buffer() replaces all three
 *
 * Limits: new_buffer must provide at least ST_MIN_BUFFER bytes, or set begin =
 * cur = end = NULL to say that there is no more room: from then on writes are
 * counted in `overflowed` and discarded, never stored anywhere.  A stream ends
 * after ST_MAX_MESSAGE_SIZE bytes: a buffer that would go on is cut there.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire.h"

enum { ST_MIN_BUFFER = 16 };

struct st_stream_writer;

struct st_stream_delegate {
  /* Replaces begin, cur and end of w.  The old buffer is as it was left. */
  void (*new_buffer)(void* self, struct st_stream_writer* w);
  /* The four bytes at size_field, in the current buffer, will be written only
   * later.  Called when the current buffer is about to be left while a
   * message is open; returns where to write instead (a patch), size_field
   * itself if the memory stays valid, or NULL to forget it. */
  uint8_t* (*redirect_size_field)(void* self, uint8_t* size_field);
};

/* An open message, whose size field the stream has to follow from buffer to
 * buffer.  The functions are in message.h. */
struct st_message {
  struct st_stream_writer* stream;
  struct st_message* parent; /* NULL for a root */
  struct st_message* child;  /* open nested message, or NULL */
  uint8_t* size_field;       /* NULL: root, or its buffer is gone for good */
  uint32_t size;             /* payload so far, nested headers included */
  bool finalized;
  uint32_t misuse;
};

struct st_stream_writer {
  uint8_t* begin;
  uint8_t* cur;
  uint8_t* end;
  uint64_t written_before; /* bytes in buffers already left */
  uint64_t overflowed;
  struct st_message* innermost; /* open messages, innermost first */
  const struct st_stream_delegate* delegate;
  void* self;
};

void st_stream_init(struct st_stream_writer* w,
                    const struct st_stream_delegate* delegate, void* self);

/* Total bytes written so far. */
static inline uint64_t st_stream_written(const struct st_stream_writer* w) {
  return w->written_before + (uint64_t)(w->cur - w->begin);
}

/* Leaves the current buffer and takes the next one. */
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

/* Reserves n <= ST_MIN_BUFFER contiguous bytes, in the next buffer if need be.
 * NULL when there is no room. */
uint8_t* st_stream_reserve(struct st_stream_writer* w, size_t n);

/* Delegates over plain memory. */

/* One caller-owned array. */
void st_stream_init_fixed(struct st_stream_writer* w, void* buffer,
                          size_t size);

/* A growing heap: slices doubling up to 128 KiB, chained. */
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
void st_stream_init_heap(struct st_stream_writer* w,
                         struct st_heap_stream* heap);
/* Starts a new stream in the first slice of an old one, and frees the rest;
 * where there is none, it makes one of that capacity. */
void st_stream_reset_heap(struct st_stream_writer* w,
                          struct st_heap_stream* heap, size_t first_capacity);
/* Chains one more slice; NULL: no memory. */
struct st_heap_slice* st_heap_stream_add(struct st_heap_stream* heap,
                                         size_t capacity);
size_t st_heap_stream_size(const struct st_heap_stream* heap,
                           const struct st_stream_writer* w);
/* Copies all slices, in order, to out. */
void st_heap_stream_copy(const struct st_heap_stream* heap,
                         const struct st_stream_writer* w, uint8_t* out);
void st_heap_stream_free(struct st_heap_stream* heap);
