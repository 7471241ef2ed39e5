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
  /* Replaces `begin`, `cur` and `end` of w by those of a new buffer.  The bytes
   * in the old buffer stay valid. */
  void (*new_buffer)(void* self, struct st_stream_writer* w);
  /* Called for each open message before the stream leaves the current buffer,
   * which contains the message's size field of four bytes.  Returns the address
   * to which the size will be written later: the address in a patch, or
   * size_field if its memory stays valid.  Returns NULL to drop the size. */
  uint8_t* (*redirect_size_field)(void* self, uint8_t* size_field);
};

/* An open message.  The stream tracks the message's size field from buffer to
 * buffer.  The functions on messages are in message.h. */
struct st_message {
  struct st_stream_writer* stream;
  /* The message that contains this one; NULL for a root. */
  struct st_message* parent;
  /* The open message that is nested directly in this one, or NULL. */
  struct st_message* child;
  /* The four bytes that are reserved for the message's length.  NULL for a
   * root, or if the buffer with these bytes is no longer accessible. */
  uint8_t* size_field;
  /* The size of the message's payload so far, with nested tags and lengths. */
  uint32_t size;
  bool finalized;
  uint32_t misuse;
};

struct st_stream_writer {
  uint8_t* begin;
  uint8_t* cur;
  uint8_t* end;
  /* The number of bytes of the stream in earlier buffers. */
  uint64_t written_before;
  uint64_t overflowed;
  /* The list of the open messages of the stream, innermost first. */
  struct st_message* innermost;
  const struct st_stream_delegate* delegate;
  void* self;
};

void st_stream_init(struct st_stream_writer* w,
                    const struct st_stream_delegate* delegate, void* self);

/* Returns the number of bytes that were written to the stream. */
static inline uint64_t st_stream_written(const struct st_stream_writer* w) {
  return w->written_before + (uint64_t)(w->cur - w->begin);
}

/* Leaves the current buffer.  The delegate provides the next buffer. */
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

/* Reserves n <= ST_MIN_BUFFER contiguous bytes of the stream, in the next
 * buffer if needed.  Returns NULL when no buffer has room. */
uint8_t* st_stream_reserve(struct st_stream_writer* w, size_t n);

/* Initialises a stream that writes into one array of the caller. */
void st_stream_init_fixed(struct st_stream_writer* w, void* buffer,
                          size_t size);

/* A stream that grows in the heap: a chain of slices.  Each slice is twice as
 * large as the one before, up to 128 KiB. */
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
/* Starts a new stream in the first slice of an old heap stream, and frees the
 * other slices.  If there is no slice, allocates one of `capacity` bytes. */
void st_stream_reset_heap(struct st_stream_writer* w,
                          struct st_heap_stream* heap, size_t first_capacity);
/* Appends one slice to the chain of a heap stream.  Returns NULL when out of
 * memory. */
struct st_heap_slice* st_heap_stream_add(struct st_heap_stream* heap,
                                         size_t capacity);
size_t st_heap_stream_size(const struct st_heap_stream* heap,
                           const struct st_stream_writer* w);
/* Copies the bytes of all slices of a heap stream, in order, to `out`. */
void st_heap_stream_copy(const struct st_heap_stream* heap,
                         const struct st_stream_writer* w, uint8_t* out);
/* Returns the bytes of all slices, in order.  If there are several, they are
 * moved to one, in which the next stream begins.  Nothing can be appended until
 * then.  Returns NULL when out of memory. */
const uint8_t* st_heap_stream_join(struct st_heap_stream* heap,
                                   struct st_stream_writer* w);
void st_heap_stream_free(struct st_heap_stream* heap);
