/* Measures our writer, and a hard-coded loop that writes the same bytes. The
 * time of this loop ("light") is a lower bound. */
#include "_protozero.h"

#include "message.h"

static uint8_t out[8192];

static void keep(void) {
  __asm__ volatile("" ::: "memory");
}

static void fill(struct st_message* m, const struct values* v) {
  st_message_append_varint(m, 1, (uint64_t)v->int32);
  st_message_append_varint(m, 2, v->uint32);
  st_message_append_varint(m, 3, (uint64_t)v->int64);
  st_message_append_varint(m, 4, v->uint64);
  st_message_append_bytes(m, 5, kText, TEXT_SIZE);
}

static size_t write_simple(const struct values* v) {
  struct st_stream_writer stream;
  struct st_message root;
  st_stream_init_fixed(&stream, out, sizeof out);
  st_message_init_root(&root, &stream);
  fill(&root, v);
  size_t size = st_message_finalize(&root);
  keep();
  return size;
}

static size_t write_nested(const struct values* v) {
  struct st_stream_writer stream;
  struct st_message levels[NESTED_LEVELS];
  st_stream_init_fixed(&stream, out, sizeof out);
  st_message_init_root(&levels[0], &stream);
  for (int level = 0; level < NESTED_LEVELS; level++) {
    if (level)
      st_message_begin_nested(&levels[level - 1], &levels[level], 6);
    fill(&levels[level], v);
  }
  size_t size = st_message_finalize(&levels[0]);
  keep();
  return size;
}

/* The hard-coded loop, whose time is a lower bound. */

static uint8_t* put_fields(uint8_t* p, const struct values* v) {
  *p++ = 0x08;
  p = st_put_varint(p, (uint64_t)v->int32);
  *p++ = 0x10;
  p = st_put_varint(p, v->uint32);
  *p++ = 0x18;
  p = st_put_varint(p, (uint64_t)v->int64);
  *p++ = 0x20;
  p = st_put_varint(p, v->uint64);
  *p++ = 0x2A;
  *p++ = TEXT_SIZE;
  memcpy(p, kText, TEXT_SIZE);
  return p + TEXT_SIZE;
}

static size_t put_simple(const struct values* v) {
  size_t size = (size_t)(put_fields(out, v) - out);
  keep();
  return size;
}

static size_t put_nested(const struct values* v) {
  uint8_t* sizes[NESTED_LEVELS];
  uint8_t* p = out;
  for (int level = 0; level < NESTED_LEVELS; level++) {
    if (level) {
      *p++ = 0x32;
      sizes[level] = p;
      p += ST_SIZE_FIELD;
    }
    p = put_fields(p, v);
  }
  for (int level = 1; level < NESTED_LEVELS; level++)
    st_put_size_field(sizes[level], (uint32_t)(p - sizes[level] - 4));
  keep();
  return (size_t)(p - out);
}

int main(void) {
  make_values();
  printf("{");
  measure("simple", write_simple, ", ");
  measure("nested", write_nested, ", ");
  measure("light_simple", put_simple, ", ");
  measure("light_nested", put_nested, "}\n");
  return 0;
}
