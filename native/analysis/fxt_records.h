/* FXT records: splits a trace in Fuchsia's format, which arrives in pieces, into
 * records, and reads the words of a record.
 *
 *   bits 0-3    type of the record
 *   bits 4-15   its size in words of 8 bytes (bits 4-35 in a large record)
 *   bits 16-63  depend on the type
 *
 *   reference to a string   0: ""   0x8000 + size: inline   else: index
 *   reference to a thread   0: inline, two words            else: index
 *
 * A record that is complete in a piece is passed on without a copy.  Large
 * records are skipped, because they may not fit into memory.  Where a record has
 * the size 0, reading continues at the next word.
 *
 * Source: Fuchsia's trace format, version 0.
 */
#pragma once

#include "memory.h"

enum { ST_FXT_WORD = 8, ST_FXT_INLINE = 0x8000 };

enum st_fxt_type {
  ST_FXT_METADATA,
  ST_FXT_INITIALIZATION,
  ST_FXT_STRING,
  ST_FXT_THREAD,
  ST_FXT_EVENT,
  ST_FXT_BLOB,
  ST_FXT_KERNEL_OBJECT = 7,
  ST_FXT_SCHEDULING,
  ST_FXT_LARGE = 15,
};

enum st_fxt_argument_type {
  ST_FXT_NULL,
  ST_FXT_INT32,
  ST_FXT_UINT32,
  ST_FXT_INT64,
  ST_FXT_UINT64,
  ST_FXT_DOUBLE,
  ST_FXT_TEXT,
  ST_FXT_POINTER,
  ST_FXT_KOID,
  ST_FXT_BOOL,
};

/* The words of a record from `at` on. */
struct st_fxt_words {
  const uint8_t* data;
  size_t size, at;
};

struct st_fxt_reader {
  ST_ARRAY(uint8_t) kept; /* The start of a record. */
  uint64_t over;          /* The rest of a large record, in bytes. */
  uint64_t void_bytes;    /* Outside of records. */
  uint64_t large;         /* The number of large records. */
};

typedef void st_fxt_record(void* context, const uint8_t* data, size_t words);

/* Returns whether a file begins with the format's magic number. */
bool st_fxt_begins(const void* data, size_t size);
/* Reads a piece, and calls `record` with each complete record. */
void st_fxt_feed(struct st_fxt_reader* r, const uint8_t* data, size_t size,
                 st_fxt_record* record, void* context);
void st_fxt_reader_free(struct st_fxt_reader* r);

/* Reads a word.  Returns false at the end of the record. */
bool st_fxt_word(struct st_fxt_words* w, uint64_t* word);
/* Reads bytes, which are padded to whole words. */
bool st_fxt_bytes(struct st_fxt_words* w, size_t size, const uint8_t** data);
/* Converts ticks of a clock.  Returns -1 if the result has more than 63 bits, or
 * if the rate is 0. */
int64_t st_fxt_ns(uint64_t ticks, uint64_t ticks_per_second);

/* Returns the bits `first` to `last` of a word. */
static inline uint32_t st_fxt_bits(uint64_t word, unsigned first,
                                   unsigned last) {
  return (uint32_t)(word >> first & ((UINT64_C(1) << (last - first + 1)) - 1));
}
