#include "message.h"

/* The largest payload of a nested message whose length takes one byte. */
enum { MAX_COMPACT_SIZE = 127 };

void st_message_init_root(struct st_message* m,
                          struct st_stream_writer* stream) {
  memset(m, 0, sizeof *m);
  m->stream = stream;
  stream->innermost = m;
}

/* Returns whether the whole message, with its size field, is in the current
 * buffer, and nothing was written after it.  Only such a message can be
 * moved. */
static bool lies_whole_at_end(const struct st_message* m) {
  const struct st_stream_writer* s = m->stream;
  return (uintptr_t)m->size_field >= (uintptr_t)s->begin &&
         (uintptr_t)m->size_field + ST_SIZE_FIELD + m->size ==
             (uintptr_t)s->cur;
}

/* Writes the length of a message into its size field.  Returns how many bytes a
 * compact length has saved. */
static uint32_t write_length(struct st_message* m) {
  if (m->size > MAX_COMPACT_SIZE || !lies_whole_at_end(m)) {
    st_put_size_field(m->size_field, m->size);
    return 0;
  }
  m->size_field[0] = (uint8_t)m->size;
  memmove(m->size_field + 1, m->size_field + ST_SIZE_FIELD, m->size);
  m->stream->cur -= ST_SIZE_FIELD - 1;
  return ST_SIZE_FIELD - 1;
}

static void finalize_innermost(struct st_message* m) {
  uint32_t saved = m->size_field ? write_length(m) : 0;
  m->finalized = true;
  m->size_field = NULL;
  if (m->stream->innermost == m)
    m->stream->innermost = m->parent;
  if (!m->parent)
    return;
  m->parent->child = NULL;
  m->parent->size += m->size - saved;
}

uint32_t st_message_finalize(struct st_message* m) {
  if (m->finalized)
    return m->size;
  struct st_message* innermost = m;
  while (innermost->child)
    innermost = innermost->child;
  while (innermost != m) {
    struct st_message* parent = innermost->parent;
    finalize_innermost(innermost);
    innermost = parent;
  }
  finalize_innermost(m);
  return m->size;
}

/* Prepares the message for `size` more bytes.  Returns false if the bytes must
 * be discarded. */
static bool admit(struct st_message* m, size_t size) {
  if (m->finalized) {
    m->misuse++;
    return false;
  }
  if (m->child)
    st_message_finalize(m->child);
  struct st_stream_writer* s = m->stream;
  uint64_t written = st_stream_written(s);
  if (written > ST_MAX_MESSAGE_SIZE || size > ST_MAX_MESSAGE_SIZE - written) {
    s->overflowed += size;
    return false;
  }
  m->size += (uint32_t)size;
  return true;
}

void st_message_append_slow(struct st_message* m, const void* data,
                            size_t size) {
  if (admit(m, size) && size > 0)
    st_stream_write(m->stream, data, size);
}

void st_message_append_bytes_slow(struct st_message* m, uint32_t field,
                                  const void* data, size_t size) {
  uint8_t header[ST_MAX_SIMPLE_FIELD];
  uint8_t* end = st_put_tag(header, field, ST_WIRE_DELIMITED);
  end = st_put_varint(end, size);
  size_t header_size = (size_t)(end - header);
  if (!admit(m, header_size + size))
    return;
  st_stream_write(m->stream, header, header_size);
  if (size > 0)
    st_stream_write(m->stream, data, size);
}

void st_message_begin_nested_slow(struct st_message* parent,
                                  struct st_message* child, uint32_t field) {
  uint8_t tag[ST_MAX_TAG];
  size_t tag_size = (size_t)(st_put_tag(tag, field, ST_WIRE_DELIMITED) - tag);
  bool admitted = admit(parent, tag_size + ST_SIZE_FIELD);
  /* The child is cleared only now, after admit().  The caller may reuse the
   * struct of a child that is still open, and admit() has to finalize that
   * child. */
  memset(child, 0, sizeof *child);
  child->stream = parent->stream;
  child->finalized = !admitted;
  if (!admitted)
    return;
  st_stream_write(parent->stream, tag, tag_size);
  child->size_field = st_stream_reserve(parent->stream, ST_SIZE_FIELD);
  if (child->size_field)
    memset(child->size_field, 0, ST_SIZE_FIELD);
  child->parent = parent;
  parent->child = child;
  parent->stream->innermost = child;
}
