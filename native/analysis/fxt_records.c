#include "fxt_records.h"

#include <stdlib.h>
#include <string.h>

static const uint8_t kMagic[] = {0x10, 0x00, 0x04, 0x46,
                                 0x78, 0x54, 0x16, 0x00};

bool st_fxt_begins(const void* data, size_t size) {
  return size >= sizeof kMagic && memcmp(data, kMagic, sizeof kMagic) == 0;
}

static uint64_t load(const uint8_t* at) {
  uint64_t word = 0;
  for (unsigned i = 0; i < ST_FXT_WORD; i++)
    word |= (uint64_t)at[i] << 8 * i;
  return word;
}

static void keep(struct st_fxt_reader* r, const uint8_t* data, size_t size) {
  ST_RESERVE(&r->kept, size);
  if (size)
    memcpy(r->kept.data + r->kept.size, data, size);
  r->kept.size += (uint32_t)size;
}

/* Returns the size in bytes of the record that begins with this word. */
static uint64_t size_of(uint64_t header) {
  bool is_large = st_fxt_bits(header, 0, 3) == ST_FXT_LARGE;
  return (uint64_t)st_fxt_bits(header, 4, is_large ? 35 : 15) * ST_FXT_WORD;
}

/* Reads the records in a buffer.  Returns the number of bytes that were read. */
static size_t read_records(struct st_fxt_reader* r, const uint8_t* data,
                           size_t size, st_fxt_record* record, void* context) {
  size_t at = 0;
  while (size - at >= ST_FXT_WORD) {
    uint64_t header = load(data + at), bytes = size_of(header);
    bool is_large = st_fxt_bits(header, 0, 3) == ST_FXT_LARGE;
    if (!bytes) {
      r->void_bytes += ST_FXT_WORD;
      at += ST_FXT_WORD;
      continue;
    }
    r->large += is_large;
    if (is_large && bytes > size - at) {
      r->over = bytes - (size - at);
      return size;
    }
    if (bytes > size - at)
      break;
    if (!is_large)
      record(context, data + at, (size_t)bytes / ST_FXT_WORD);
    at += (size_t)bytes;
  }
  return at;
}

/* Completes the record that an earlier piece has begun.  Returns the number of
 * bytes of this piece that were read. */
static size_t complete(struct st_fxt_reader* r, const uint8_t* data,
                       size_t size, st_fxt_record* record, void* context) {
  size_t used = 0;
  while (r->kept.size && used < size) {
    uint64_t wanted =
        r->kept.size < ST_FXT_WORD ? ST_FXT_WORD : size_of(load(r->kept.data));
    size_t count = (size_t)(wanted - r->kept.size);
    count = count < size - used ? count : size - used;
    keep(r, data + used, count);
    used += count;
    size_t read = read_records(r, r->kept.data, r->kept.size, record, context);
    if (read)
      r->kept.size = 0;
  }
  return used;
}

void st_fxt_feed(struct st_fxt_reader* r, const uint8_t* data, size_t size,
                 st_fxt_record* record, void* context) {
  size_t skipped = r->over < size ? (size_t)r->over : size;
  r->over -= skipped;
  size_t at = skipped;
  at += complete(r, data + at, size - at, record, context);
  if (r->over &&
      at < size) { /* The kept word was the first one of a large record. */
    st_fxt_feed(r, data + at, size - at, record, context);
    return;
  }
  if (r->kept.size)
    return;
  at += read_records(r, data + at, size - at, record, context);
  keep(r, data + at, size - at);
}

void st_fxt_reader_free(struct st_fxt_reader* r) {
  free(r->kept.data);
  *r = (struct st_fxt_reader){0};
}

bool st_fxt_word(struct st_fxt_words* w, uint64_t* word) {
  if (w->at >= w->size)
    return false;
  *word = load(w->data + w->at++ * ST_FXT_WORD);
  return true;
}

bool st_fxt_bytes(struct st_fxt_words* w, size_t size, const uint8_t** data) {
  size_t words = (size + ST_FXT_WORD - 1) / ST_FXT_WORD;
  if (w->at > w->size || words > w->size - w->at)
    return false;
  *data = w->data + w->at * ST_FXT_WORD;
  w->at += words;
  return true;
}

int64_t st_fxt_ns(uint64_t ticks, uint64_t ticks_per_second) {
  const uint64_t second = 1000000000;
  if (!ticks_per_second)
    return -1;
  uint64_t high = ticks >> 32, unit = (second << 32) / ticks_per_second;
  if (high && unit > UINT64_MAX / high)
    return -1;
  uint64_t result =
      high * unit + (ticks & UINT32_MAX) * second / ticks_per_second;
  return result > INT64_MAX ? -1 : (int64_t)result;
}
