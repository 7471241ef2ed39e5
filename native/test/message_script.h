/* Makes messages from a script of random or fuzzed bytes, with two encoders:
 * the message writer under test, and a plain encoder.
 *
 * Each step is a byte.  It selects the field to append, and the open message
 * that gets it; descendants of that message end.  The plain encoder keeps the
 * bytes of each open level.  When a level ends, its bytes are appended to the
 * parent's level as a nested field.
 */
#pragma once

#include "canonical.h"
#include "core/message.h"

struct script {
  const uint8_t* p;
  const uint8_t* end;
};

static inline uint8_t script_byte(struct script* s) {
  return s->p < s->end ? *s->p++ : 0;
}

static inline uint32_t script_u16(struct script* s) {
  uint32_t low = script_byte(s);
  return low | (uint32_t)script_byte(s) << 8;
}

enum { PLAIN_LEVELS = 12, PLAIN_LIMIT = 1 << 20, SCRIPT_BYTES_LIMIT = 8192 };

/* The encoded bytes of one open level.  Their memory grows on demand and is
 * never freed, so the struct must be static. */
struct plain_level {
  uint8_t* data;
  size_t size;
};
struct plain_message {
  struct plain_level levels[PLAIN_LEVELS];
  unsigned depth; /* The depth of the innermost open level. */
};

static inline void plain_append(struct plain_message* m, unsigned depth,
                                const void* data, size_t size) {
  struct plain_level* level = &m->levels[depth];
  if (!level->data)
    level->data = malloc(PLAIN_LIMIT);
  CHECK(level->data && level->size + size <= PLAIN_LIMIT);
  if (size > 0)
    memcpy(level->data + level->size, data, size);
  level->size += size;
}

static inline void plain_end(struct plain_message* m) {
  struct plain_level* ended = &m->levels[m->depth--];
  uint8_t header[ST_MAX_TAG + ST_MAX_VARINT];
  uint8_t* end = st_put_tag(header, NESTED_FIELD, ST_WIRE_DELIMITED);
  end = st_put_varint(end, ended->size);
  plain_append(m, m->depth, header, (size_t)(end - header));
  plain_append(m, m->depth, ended->data, ended->size);
  ended->size = 0;
}

static inline void plain_free(struct plain_message* m) {
  for (unsigned i = 0; i < PLAIN_LEVELS; i++)
    free(m->levels[i].data);
  memset(m, 0, sizeof *m);
}

static const uint8_t* script_payload(void) {
  static uint8_t bytes[SCRIPT_BYTES_LIMIT];
  if (!bytes[1])
    for (size_t i = 0; i < sizeof bytes; i++)
      bytes[i] = (uint8_t)(i * 7);
  return bytes;
}

/* Appends one field to the message, and the same field to level `depth` of the
 * plain encoder. */
static inline void script_append(struct script* s, struct st_message* m,
                                 struct plain_message* plain, unsigned depth,
                                 unsigned what) {
  uint8_t b[32];
  uint8_t* e = b;
  uint32_t v = script_u16(s);
  switch (what) {
    case 0:
      st_message_append_varint(m, 1, v);
      e = st_put_u64_field(e, 1, v);
      break;
    case 1:
      st_message_append_varint(m, 536870911, UINT64_MAX - v);
      e = st_put_u64_field(e, 536870911, UINT64_MAX - v);
      break;
    case 2:
      st_message_append_fixed64(m, 4, v);
      e = st_put_fixed64_field(e, 4, v);
      break;
    case 3:
      st_message_append_fixed32(m, 5, v);
      e = st_put_tag(e, 5, ST_WIRE_FIXED32);
      memcpy(e, &v, 4);
      e += 4;
      break;
    case 4: {
      uint8_t raw[16];
      size_t size = (size_t)(st_put_u64_field(raw, 6, v) - raw);
      st_message_append_raw(m, raw, size);
      plain_append(plain, depth, raw, size);
      return;
    }
    default: {
      size_t size = v % (what == 5 ? SCRIPT_BYTES_LIMIT : 160);
      st_message_append_bytes(m, 2, script_payload(), size);
      e = st_put_varint(st_put_tag(e, 2, ST_WIRE_DELIMITED), size);
      plain_append(plain, depth, b, (size_t)(e - b));
      plain_append(plain, depth, script_payload(), size);
      return;
    }
  }
  plain_append(plain, depth, b, (size_t)(e - b));
}

/* Appends up to `steps` fields to `root` and to the plain encoder, whose root
 * is levels[0]. */
static inline void script_message(struct script* s, struct st_message* root,
                                  struct plain_message* plain, unsigned steps) {
  struct st_message nested[PLAIN_LEVELS];
  struct st_message* open[PLAIN_LEVELS] = {root};
  plain->levels[0].size = 0;
  plain->depth = 0;
  plain_append(plain, 0, "", 0);
  while (steps-- > 0 && s->p < s->end) {
    uint8_t step = script_byte(s);
    unsigned what = step % 10;
    bool outwards = step >= 160;
    unsigned depth = outwards ? step % (plain->depth + 1) : plain->depth;
    if (plain->levels[0].size > PLAIN_LIMIT / 8)
      break;
    while (plain->depth > depth)
      plain_end(plain);
    if (what >= 7 && depth + 1 < PLAIN_LEVELS) {
      open[depth + 1] = &nested[depth + 1];
      st_message_begin_nested(open[depth], open[depth + 1], NESTED_FIELD);
      plain->depth++;
      plain_append(plain, plain->depth, "", 0);
    } else {
      script_append(s, open[depth], plain, depth, what % 7);
    }
  }
  while (plain->depth > 0)
    plain_end(plain);
  st_message_finalize(root);
}
