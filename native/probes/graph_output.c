#include "probes/graph_output.h"

#include <errno.h>
#include <unistd.h>

#include "core/wire.h"
#include "probes/mapped_array.h"

enum {
  OBJECTS = 2,
  FIELD_NAMES = 4,
  ROOTS = 7,
  TYPES = 9,

  HEAD = 4, /* The size of a part. */
  PART = 64 << 10,
  /* An object has a few numbers and two packed fields of at most five bytes a
   * number. */
  MAX_MESSAGE = 128 + 2 * 5 * ST_GRAPH_MAX_REFERENCES,
};

static void write_all(struct st_graph_output* o, const uint8_t* data,
                      size_t size) {
  while (size && !o->failed) {
    ssize_t n = write(o->fd, data, size);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0) {
      o->failed = true;
      return;
    }
    data += n;
    size -= (size_t)n;
  }
}

static void write_part(struct st_graph_output* o) {
  uint32_t size = (uint32_t)(o->size - HEAD);
  memcpy(o->data, &size, HEAD);
  write_all(o, o->data, o->size);
  o->size = HEAD;
}

bool st_graph_output_init(struct st_graph_output* o, int fd) {
  *o = (struct st_graph_output){
      .fd = fd, .data = st_mapped_new(PART + MAX_MESSAGE), .size = HEAD};
  return o->data != NULL;
}

/* Begins a message; its size is written by end(). */
static uint8_t* begin(const struct st_graph_output* o, uint32_t field) {
  return st_put_tag(o->data + o->size, field, ST_WIRE_DELIMITED) +
         ST_SIZE_FIELD;
}

static void end(struct st_graph_output* o, uint8_t* begin, uint8_t* end) {
  st_put_size_field(begin - ST_SIZE_FIELD, (uint32_t)(end - begin));
  o->size = (size_t)(end - o->data);
  if (o->size >= PART)
    write_part(o);
}

/* Writes a packed field: one number of each reference. */
static uint8_t* put_packed(uint8_t* p, uint32_t field,
                           const struct st_graph_reference* references,
                           size_t count, bool objects) {
  uint8_t* numbers = st_put_tag(p, field, ST_WIRE_DELIMITED) + ST_SIZE_FIELD;
  p = numbers;
  for (size_t i = 0; i < count; i++)
    p = st_put_varint(p, objects ? references[i].object : references[i].field);
  st_put_size_field(numbers - ST_SIZE_FIELD, (uint32_t)(p - numbers));
  return p;
}

void st_graph_object(struct st_graph_output* o, uint32_t object, uint32_t type,
                     uint64_t size, const struct st_graph_reference* references,
                     size_t count) {
  uint8_t* message = begin(o, OBJECTS);
  uint8_t* p = st_put_u64_field(message, 1, object);
  p = st_put_u64_field(p, 2, type);
  p = st_put_u64_field(p, 3, size);
  if (count) {
    p = put_packed(p, 4, references, count, false);
    p = put_packed(p, 5, references, count, true);
  }
  end(o, message, p);
}

static void put_name(struct st_graph_output* o, uint32_t message, uint32_t id,
                     uint32_t field, const char* name, size_t size) {
  uint8_t* begun = begin(o, message);
  uint8_t* p = st_put_u64_field(begun, 1, id);
  size = size < ST_GRAPH_MAX_NAME ? size : ST_GRAPH_MAX_NAME;
  end(o, begun, st_put_bytes_field(p, field, name, size));
}

void st_graph_type(struct st_graph_output* o, uint32_t type, const char* name,
                   size_t size) {
  put_name(o, TYPES, type, 3, name, size);
}

void st_graph_field(struct st_graph_output* o, uint32_t field, const char* name,
                    size_t size) {
  put_name(o, FIELD_NAMES, field, 2, name, size);
}

void st_graph_root(struct st_graph_output* o, uint32_t object, uint32_t kind) {
  struct st_graph_reference reference = {.object = object};
  uint8_t* message = begin(o, ROOTS);
  uint8_t* p = put_packed(message, 1, &reference, 1, true);
  end(o, message, st_put_u64_field(p, 2, kind));
}

void st_graph_finish(struct st_graph_output* o) {
  if (o->size > HEAD)
    write_part(o);
  write_part(o);
}
