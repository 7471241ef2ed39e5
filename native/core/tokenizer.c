#include "tokenizer.h"

#include <stdlib.h>

#include "wire.h"

/* The extent of the first field in a range of bytes. */
struct extent {
  size_t total; /* The size of the field with its tag; 0 if not known yet. */
  const uint8_t* payload;
  size_t size;
  bool is_message;
};

enum measure { WHOLE, CUT, BROKEN };

/* Returns why the bytes hold no valid varint: CUT if they end within the
 * varint, BROKEN if the varint is too long. */
static enum measure no_varint(const uint8_t* p, const uint8_t* end) {
  return end - p < ST_MAX_VARINT ? CUT : BROKEN;
}

static enum measure measure_fixed(const uint8_t* begin, const uint8_t* p,
                                  const uint8_t* end, size_t size,
                                  struct extent* out) {
  out->total = (size_t)(p - begin) + size;
  return out->total <= (size_t)(end - begin) ? WHOLE : CUT;
}

static enum measure measure_delimited(const struct st_tokenizer* t,
                                      const uint8_t* begin, const uint8_t* p,
                                      const uint8_t* end, struct extent* out) {
  uint64_t size;
  const uint8_t* payload = st_get_varint(p, end, &size);
  if (!payload)
    return no_varint(p, end);
  if (size > t->max_size)
    return BROKEN;
  out->payload = payload;
  out->size = (size_t)size;
  return measure_fixed(begin, payload, end, out->size, out);
}

static enum measure measure(const struct st_tokenizer* t, const uint8_t* begin,
                            const uint8_t* end, struct extent* out) {
  uint64_t tag, value;
  *out = (struct extent){0};
  const uint8_t* p = st_get_varint(begin, end, &tag);
  if (!p)
    return no_varint(begin, end);
  uint32_t number = (uint32_t)(tag >> 3);
  if (!number)
    return BROKEN;
  switch (tag & 7) {
    case ST_WIRE_VARINT: {
      const uint8_t* after = st_get_varint(p, end, &value);
      out->total = after ? (size_t)(after - begin) : 0;
      return after ? WHOLE : no_varint(p, end);
    }
    case ST_WIRE_FIXED64:
      return measure_fixed(begin, p, end, 8, out);
    case ST_WIRE_FIXED32:
      return measure_fixed(begin, p, end, 4, out);
    case ST_WIRE_DELIMITED:
      out->is_message = number == t->field;
      return measure_delimited(t, begin, p, end, out);
    default:
      return BROKEN;
  }
}

static size_t kept_left(const struct st_tokenizer* t) {
  return t->kept_size - t->kept_pos;
}

static bool reserve(struct st_tokenizer* t, size_t size) {
  if (size <= t->kept_capacity)
    return true;
  uint8_t* grown = realloc(t->kept, 2 * size);
  if (!grown) {
    t->out_of_memory = true;
    return false;
  }
  t->kept = grown;
  t->kept_capacity = 2 * size;
  return true;
}

static void consume_kept(struct st_tokenizer* t, size_t n) {
  t->kept_pos += n;
  if (!kept_left(t))
    t->kept_pos = t->kept_size = 0;
}

static void move_kept_to_front(struct st_tokenizer* t) {
  size_t size = kept_left(t);
  if (t->kept_pos)
    memmove(t->kept, t->kept + t->kept_pos, size);
  t->kept_pos = 0;
  t->kept_size = size;
}

/* Moves up to n bytes from the piece to the kept bytes.  Returns false if the
 * piece is empty, or when out of memory. */
static bool keep(struct st_tokenizer* t, size_t n) {
  size_t left = (size_t)(t->end - t->cur);
  size_t part = n < left ? n : left;
  if (!part)
    return false;
  move_kept_to_front(t);
  if (!reserve(t, t->kept_size + part))
    return false;
  memcpy(t->kept + t->kept_size, t->cur, part);
  t->kept_size += part;
  t->cur += part;
  return true;
}

/* Considers the first n bytes of the marker.  Returns the size of their longest
 * proper suffix that is also a beginning of the marker (the failure function of
 * Knuth-Morris-Pratt). */
static size_t border(const uint8_t* marker, size_t n) {
  size_t size = n - 1;
  while (size && memcmp(marker, marker + n - size, size) != 0)
    size--;
  return size;
}

/* Returns how many bytes of the marker are matched after this input byte. */
static size_t match(const struct st_tokenizer* t, uint8_t byte) {
  size_t matched = t->marker_matched;
  while (matched && t->marker[matched] != byte)
    matched = border(t->marker, matched);
  return t->marker[matched] == byte ? matched + 1 : 0;
}

/* Returns the position after the marker in [p, end), or NULL if the marker does
 * not end there. */
static const uint8_t* seek(struct st_tokenizer* t, const uint8_t* p,
                           const uint8_t* end) {
  while (p < end) {
    t->marker_matched = match(t, *p++);
    t->skipped++;
    if (t->marker_matched == t->marker_size) {
      t->lost = false;
      return p;
    }
  }
  return NULL;
}

/* Skips input up to the end of the next marker.  Returns false if the piece has
 * no marker. */
static bool find_marker(struct st_tokenizer* t) {
  if (!t->marker_size) {
    t->skipped += (uint64_t)(t->end - t->cur);
    t->cur = t->end;
    return false;
  }
  if (kept_left(t)) {
    const uint8_t* begin = t->kept + t->kept_pos;
    const uint8_t* found = seek(t, begin, t->kept + t->kept_size);
    consume_kept(t, found ? (size_t)(found - begin) : kept_left(t));
    if (found)
      return true;
  }
  const uint8_t* found = seek(t, t->cur, t->end);
  t->cur = found ? found : t->end;
  return found != NULL;
}

enum step { FOUND, GOT_LOST, NEEDS_MORE };

static enum step get_lost(struct st_tokenizer* t) {
  t->errors++;
  t->lost = true;
  t->marker_matched = 0;
  return GOT_LOST;
}

static enum step next_kept(struct st_tokenizer* t, struct extent* out) {
  for (;;) {
    switch (measure(t, t->kept + t->kept_pos, t->kept + t->kept_size, out)) {
      case WHOLE:
        consume_kept(t, out->total);
        return FOUND;
      case BROKEN:
        return get_lost(t);
      case CUT:
        if (keep(t, out->total ? out->total - kept_left(t) : 1))
          continue;
        return t->ended && !t->out_of_memory ? get_lost(t) : NEEDS_MORE;
    }
  }
}

static enum step next_in_piece(struct st_tokenizer* t, struct extent* out) {
  switch (measure(t, t->cur, t->end, out)) {
    case WHOLE:
      t->cur += out->total;
      return FOUND;
    case BROKEN:
      return get_lost(t);
    case CUT:
      break;
  }
  return keep(t, (size_t)(t->end - t->cur)) && t->ended ? get_lost(t)
                                                        : NEEDS_MORE;
}

bool st_tokenizer_next(struct st_tokenizer* t, struct st_token* out) {
  while (!t->lost || find_marker(t)) {
    struct extent field;
    bool in_piece = kept_left(t) == 0;
    enum step step = in_piece ? next_in_piece(t, &field) : next_kept(t, &field);
    if (step == NEEDS_MORE)
      return false;
    if (step == FOUND && field.is_message) {
      *out = (struct st_token){field.payload, field.size, in_piece};
      return true;
    }
  }
  return false;
}

void st_tokenizer_init(struct st_tokenizer* t, uint32_t field, size_t max_size,
                       const void* marker, size_t marker_size) {
  *t = (struct st_tokenizer){.field = field,
                             .max_size = max_size,
                             .marker = marker,
                             .marker_size = marker_size};
}

void st_tokenizer_append(struct st_tokenizer* t, const void* data,
                         size_t size) {
  t->cur = data;
  t->end = size ? t->cur + size : t->cur;
}

void st_tokenizer_end(struct st_tokenizer* t) {
  t->ended = true;
}

void st_tokenizer_free(struct st_tokenizer* t) {
  free(t->kept);
  t->kept = NULL;
  t->kept_pos = t->kept_size = t->kept_capacity = 0;
}
