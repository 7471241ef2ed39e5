/* Append-only protobuf messages over a stream writer.
 *
 * Problem: a nested message is preceded by its length, which is known only when
 * it ends; by then its beginning may be in a buffer that is gone.
 *
 * So opening a nested message reserves four contiguous bytes; finalizing it
 * writes the length there as a redundant varint.  If the message turned out to
 * be at most 127 bytes and is still completely in the current buffer, it is
 * moved back by three bytes and gets a one-byte length instead.
 *
 *   open       tag | 4 reserved | ...
 *   compact    tag | n | payload                     n <= 127, one buffer
 *   redundant  tag | n+80 .. n | payload
 *   patched    tag | 00 00 00 00 | ...  and the size is sent as a patch
 *
 * Life cycle: messages nest like a stack.  Each struct is in the caller's stack
 * frame (or in an arena) and has at most one open child, and appending to a
 * parent finalizes its open descendants first.  Finalizing twice is harmless.
 * Appending to a finalized message is discarded (`misuse` counts it).
 *
 *   struct st_message root, event;
 *   st_message_init_root(&root, &stream);
 *   st_message_append_varint(&root, 8, timestamp);
 *   st_message_begin_nested(&root, &event, 11);
 *   st_message_append_varint(&event, 9, type);
 *   st_message_finalize(&root);
 *
 * The root has no size field: the owner of the stream frames it.
 *
 * A field that fits into the current buffer is written inline.  A function is
 * called only if the buffer is full, or a child must be finalized first.
 *
 * Limits: a stream of messages holds at most ST_MAX_MESSAGE_SIZE bytes, the
 * maximum of a size field.  Bytes beyond that are discarded and counted in the
 * stream's `overflowed`.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stream_writer.h"

void st_message_init_root(struct st_message* m,
                          struct st_stream_writer* stream);
/* Ends the message and its open descendants.  Returns the size of the
 * payload. */
uint32_t st_message_finalize(struct st_message* m);

/* Returns n contiguous bytes in the current buffer, which the caller must write
 * at once.  Returns NULL if m is not the innermost open message, or if the
 * buffer has less room. */
static inline uint8_t* st_message_room(const struct st_message* m, size_t n) {
  const struct st_stream_writer* s = m->stream;
  return s->innermost == m && (size_t)(s->end - s->cur) >= n ? s->cur : NULL;
}

/* Appends bytes that the caller has written to the room of the message.  They
 * begin at the result of st_message_room(), and end at `end`. */
static inline void st_message_advance(struct st_message* m, uint8_t* end) {
  m->size += (uint32_t)(end - m->stream->cur);
  m->stream->cur = end;
}

enum { ST_MAX_SIMPLE_FIELD = ST_MAX_TAG + ST_MAX_VARINT };

/* Appends bytes to a message, over several buffers if needed. */
void st_message_append_slow(struct st_message* m, const void* data,
                            size_t size);
void st_message_append_bytes_slow(struct st_message* m, uint32_t field,
                                  const void* data, size_t size);
void st_message_begin_nested_slow(struct st_message* parent,
                                  struct st_message* child, uint32_t field);

/* Appends fields that the caller has encoded with their tags. */
static inline void st_message_append_raw(struct st_message* m, const void* data,
                                         size_t size) {
  uint8_t* p = st_message_room(m, size);
  if (!p || !size) {
    st_message_append_slow(m, data, size);
    return;
  }
  memcpy(p, data, size);
  st_message_advance(m, p + size);
}

static inline void st_message_append_varint(struct st_message* m,
                                            uint32_t field, uint64_t value) {
  uint8_t* p = st_message_room(m, ST_MAX_SIMPLE_FIELD);
  if (p) {
    st_message_advance(m, st_put_u64_field(p, field, value));
    return;
  }
  uint8_t bytes[ST_MAX_SIMPLE_FIELD];
  uint8_t* end = st_put_u64_field(bytes, field, value);
  st_message_append_slow(m, bytes, (size_t)(end - bytes));
}

static inline void st_message_append_fixed32(struct st_message* m,
                                             uint32_t field, uint32_t value) {
  uint8_t bytes[ST_MAX_SIMPLE_FIELD];
  uint8_t* end = st_put_tag(bytes, field, ST_WIRE_FIXED32);
  memcpy(end, &value, sizeof value);
  st_message_append_raw(m, bytes, (size_t)(end - bytes) + sizeof value);
}

static inline void st_message_append_fixed64(struct st_message* m,
                                             uint32_t field, uint64_t value) {
  uint8_t bytes[ST_MAX_SIMPLE_FIELD];
  uint8_t* end = st_put_fixed64_field(bytes, field, value);
  st_message_append_raw(m, bytes, (size_t)(end - bytes));
}

static inline void st_message_append_bytes(struct st_message* m, uint32_t field,
                                           const void* data, size_t size) {
  uint8_t* p = size && size <= ST_MAX_MESSAGE_SIZE
                   ? st_message_room(m, ST_MAX_SIMPLE_FIELD + size)
                   : NULL;
  if (p)
    st_message_advance(m, st_put_bytes_field(p, field, data, size));
  else
    st_message_append_bytes_slow(m, field, data, size);
}

static inline void st_message_begin_nested(struct st_message* parent,
                                           struct st_message* child,
                                           uint32_t field) {
  uint8_t* p = st_message_room(parent, ST_MAX_TAG + ST_SIZE_FIELD);
  if (!p) {
    st_message_begin_nested_slow(parent, child, field);
    return;
  }
  p = st_put_tag(p, field, ST_WIRE_DELIMITED);
  memset(p, 0, ST_SIZE_FIELD);
  st_message_advance(parent, p + ST_SIZE_FIELD);
  *child = (struct st_message){
      .stream = parent->stream, .parent = parent, .size_field = p};
  parent->child = child;
  parent->stream->innermost = child;
}
