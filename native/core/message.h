/* Append-only protobuf messages over a stream writer.
 *
 * Problem: a nested message is preceded by its length, which is known only
 * when it ends; by then its beginning may be in a buffer that is gone.
 *
 * So opening a nested message reserves four contiguous bytes; finalizing it
 * writes the length there as a redundant varint.  If the message turned out
 * to be at most 127 bytes and still lies whole in the current buffer, it is
 * moved back by three bytes and gets a one-byte length instead.
 *
 *   open       tag | 4 reserved | ...
 *   compact    tag | n | payload                     n <= 127, one buffer
 *   redundant  tag | n+80 .. n | payload
 *   patched    tag | 00 00 00 00 | ...  and the size goes through a patch
 *
 * Life cycle: messages nest like a stack.  Each struct lives in the caller's
 * frame (or arena), has at most one open child, and appending to a parent
 * finalizes its open descendants first.  Finalizing twice is harmless.
 * Appending to a finalized message is discarded (`misuse` counts it).
 *
 *   struct st_message root, event;
 *   st_message_init_root(&root, &stream);
 *   st_message_append_varint(&root, 8, timestamp);
 *   st_message_begin_nested(&root, &event, 11);
 *   st_message_append_varint(&event, 9, type);
 *   st_message_finalize(&root);
 *
 * The root has no size field: who owns the stream frames it.
 *
 * Limits: a stream of messages holds at most ST_MAX_MESSAGE_SIZE bytes, since
 * a size field can't say more; what goes beyond is discarded and counted in
 * the stream's `overflowed`.
 */
#ifndef STRETTO_CORE_MESSAGE_H_
#define STRETTO_CORE_MESSAGE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stream_writer.h"

struct st_message {
  struct st_stream_writer* stream;
  struct st_message* parent; /* NULL for a root */
  struct st_message* child;  /* open nested message, or NULL */
  uint8_t* size_field;       /* NULL: root, or its buffer is gone for good */
  uint32_t size;             /* payload so far, nested headers included */
  bool finalized;
  uint32_t misuse;
};

void st_message_init_root(struct st_message* m,
                          struct st_stream_writer* stream);
void st_message_begin_nested(struct st_message* parent,
                             struct st_message* child, uint32_t field);
/* Returns the size of the payload. */
uint32_t st_message_finalize(struct st_message* m);

void st_message_append_varint(struct st_message* m, uint32_t field,
                              uint64_t value);
void st_message_append_fixed32(struct st_message* m, uint32_t field,
                               uint32_t value);
void st_message_append_fixed64(struct st_message* m, uint32_t field,
                               uint64_t value);
void st_message_append_bytes(struct st_message* m, uint32_t field,
                             const void* data, size_t size);
/* Already encoded fields, without a tag of their own. */
void st_message_append_raw(struct st_message* m, const void* data, size_t size);

#endif /* STRETTO_CORE_MESSAGE_H_ */
