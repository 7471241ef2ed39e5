#include "probes/ftrace_event.h"

#include "core/fields.h"

enum {
  /* The fields that every FtraceEvent has. */
  EVENT_TIMESTAMP = 1,
  EVENT_PID = 2,
  /* The largest size whose length takes one byte. */
  MAX_SMALL_EVENT = 127,
  GENERIC_FIELD = 2,
};

static bool is_number(const struct st_ftrace_field* f) {
  return f->kind <= ST_FTRACE_UNSIGNED || f->kind == ST_FTRACE_DEVICE ||
         f->kind == ST_FTRACE_ADDRESS;
}

bool st_ftrace_event_is_valid(const struct st_ftrace_event* event) {
  for (uint32_t i = 0; i < event->field_count; i++) {
    const struct st_ftrace_field* f = &event->fields[i];
    if (f->kind >= ST_FTRACE_KINDS ||
        (is_number(f) && f->size != 1 && f->size != 2 && f->size != 4 &&
         f->size != 8))
      return false;
  }
  const struct st_ftrace_field* f = event->fields;
  if (event->form == ST_FTRACE_PRINT)
    return event->field_count &&
           f[event->field_count - 1].kind == ST_FTRACE_REST;
  if (event->form <= ST_FTRACE_PLAIN)
    return true;
  return event->form <= ST_FTRACE_COMPACT_WAKING && event->field_count == 4 &&
         f[0].kind == ST_FTRACE_SIGNED && f[1].kind == ST_FTRACE_SIGNED &&
         f[2].kind == ST_FTRACE_SIGNED && f[3].kind == ST_FTRACE_CHARS &&
         f[3].size == ST_COMM_SIZE;
}

/* --- fields */

/* Converts a device number from the kernel's form, 12 bits major above 20 bits
 * minor, to that of user space, which splits the minor number. */
static uint64_t user_device(uint64_t device) {
  uint64_t major = device >> 20 & 0xFFF, minor = device & 0xFFFFF;
  return (minor & 0xFF) | major << 8 | (minor & ~(uint64_t)0xFF) << 12;
}

static void append_string(struct st_message* m, uint32_t number,
                          const uint8_t* text, size_t size) {
  st_message_append_bytes(m, number, text, strnlen((const char*)text, size));
}

/* Appends the string or bytes that a __data_loc field refers to. */
static void append_location(struct st_message* m,
                            const struct st_ftrace_field* f,
                            const struct st_ftrace_record* r) {
  uint32_t location;
  if (f->size != sizeof location)
    return;
  memcpy(&location, r->data + f->offset, sizeof location);
  size_t offset = location & 0xFFFF, size = location >> 16;
  if (offset > r->size || size > r->size - offset)
    return;
  if (f->kind == ST_FTRACE_LOC_BYTES)
    st_message_append_bytes(m, f->number, r->data + offset, size);
  else
    append_string(m, f->number, r->data + offset, size);
}

static bool is_in_record(const struct st_ftrace_field* f,
                         const struct st_ftrace_record* r) {
  return f->offset <= r->size && f->size <= r->size - f->offset;
}

static uint64_t number_at(struct st_address_numbers* addresses,
                          const uint8_t* p, const struct st_ftrace_field* f) {
  if (f->kind == ST_FTRACE_SIGNED)
    return (uint64_t)st_ftrace_signed(p, f->size);
  uint64_t value = st_ftrace_unsigned(p, f->size);
  if (f->kind == ST_FTRACE_ADDRESS)
    return st_number_of(addresses, value);
  return f->kind == ST_FTRACE_DEVICE ? user_device(value) : value;
}

static void append_value(struct st_message* m,
                         struct st_address_numbers* addresses,
                         const struct st_ftrace_field* f,
                         const struct st_ftrace_record* r) {
  const uint8_t* p = r->data + f->offset;
  switch (f->kind) {
    case ST_FTRACE_SIGNED:
    case ST_FTRACE_UNSIGNED:
    case ST_FTRACE_DEVICE:
    case ST_FTRACE_ADDRESS:
      st_message_append_varint(m, f->number, number_at(addresses, p, f));
      break;
    case ST_FTRACE_CHARS:
      append_string(m, f->number, p, f->size);
      break;
    case ST_FTRACE_REST:
      append_string(m, f->number, p, r->size - f->offset);
      break;
    case ST_FTRACE_U64_ARRAY:
      for (size_t i = 0; i + 8 <= f->size; i += 8)
        st_message_append_varint(m, f->number, st_ftrace_unsigned(p + i, 8));
      break;
    default:
      append_location(m, f, r);
  }
}

static void append_field(struct st_message* m,
                         struct st_address_numbers* addresses,
                         const struct st_ftrace_field* f,
                         const struct st_ftrace_record* r) {
  if (!is_in_record(f, r))
    return;
  if (!f->label) {
    append_value(m, addresses, f, r);
    return;
  }
  struct st_message field;
  st_message_begin_nested(m, &field, GENERIC_FIELD);
  st_message_append_raw(&field, f->label, f->label_size);
  append_value(&field, addresses, f, r);
  st_message_finalize(&field);
}

/* --- events */

/* Writes a field whose value is a number, an array of numbers, or a string of
 * fixed size.  Returns NULL if it has another kind, or needs more room. */
static uint8_t* put_field(uint8_t* p, const uint8_t* limit,
                          struct st_address_numbers* addresses,
                          const struct st_ftrace_field* f,
                          const struct st_ftrace_record* r) {
  if (!is_in_record(f, r))
    return p;
  const uint8_t* from = r->data + f->offset;
  size_t room = (size_t)(limit - p);
  if (is_number(f))
    return room < ST_MAX_SIMPLE_FIELD
               ? NULL
               : st_put_u64_field(p, f->number, number_at(addresses, from, f));
  if (f->kind == ST_FTRACE_U64_ARRAY) {
    if (room < f->size / 8u * ST_MAX_SIMPLE_FIELD)
      return NULL;
    for (size_t i = 0; i + 8 <= f->size; i += 8)
      p = st_put_u64_field(p, f->number, st_ftrace_unsigned(from + i, 8));
    return p;
  }
  if (f->kind != ST_FTRACE_CHARS ||
      room < ST_MAX_SIMPLE_FIELD + (size_t)f->size)
    return NULL;
  return st_put_bytes_field(p, f->number, from,
                            strnlen((const char*)from, f->size));
}

/* Writes an event of at most 127 bytes in place: the lengths of its messages
 * take a byte each.  Returns false, with nothing written, if it may be longer,
 * or if the buffer ends before. */
static bool append_small(struct st_message* bundle,
                         struct st_address_numbers* addresses,
                         const struct st_ftrace_event* event,
                         const struct st_ftrace_record* r) {
  uint8_t* p = st_message_room(bundle, ST_MAX_TAG + 1 + MAX_SMALL_EVENT);
  if (!p)
    return false;
  p = st_put_tag(p, ST_FIELD_FTRACE_EVENT_BUNDLE_EVENT, ST_WIRE_DELIMITED);
  uint8_t *size = p++, *limit = p + MAX_SMALL_EVENT;
  p = st_put_u64_field(p, EVENT_TIMESTAMP, r->time);
  p = st_put_u64_field(p, EVENT_PID, (uint32_t)st_ftrace_event_pid(r));
  p = st_put_tag(p, event->number, ST_WIRE_DELIMITED);
  uint8_t* inner_size = p++;
  for (uint32_t i = 0; i < event->field_count; i++) {
    p = put_field(p, limit, addresses, &event->fields[i], r);
    if (!p)
      return false;
  }
  *inner_size = (uint8_t)(p - inner_size - 1);
  *size = (uint8_t)(p - size - 1);
  st_message_advance(bundle, p);
  return true;
}

void st_ftrace_append_event(struct st_message* bundle,
                            struct st_address_numbers* addresses,
                            const struct st_ftrace_event* event,
                            const struct st_ftrace_record* r) {
  if (!event->prefix && append_small(bundle, addresses, event, r))
    return;
  struct st_message outer, inner;
  st_message_begin_nested(bundle, &outer, ST_FIELD_FTRACE_EVENT_BUNDLE_EVENT);
  st_message_append_varint(&outer, EVENT_TIMESTAMP, r->time);
  st_message_append_varint(&outer, EVENT_PID, (uint32_t)st_ftrace_event_pid(r));
  st_message_begin_nested(&outer, &inner, event->number);
  if (event->prefix)
    st_message_append_raw(&inner, event->prefix, event->prefix_size);
  for (uint32_t i = 0; i < event->field_count; i++)
    append_field(&inner, addresses, &event->fields[i], r);
  st_message_finalize(&inner);
  st_message_finalize(&outer);
}

bool st_ftrace_is_allowed(const struct st_ftrace_table* table,
                          const struct st_ftrace_event* event,
                          const struct st_ftrace_record* r) {
  size_t offset = event->fields[event->field_count - 1].offset;
  return offset > r->size ||
         st_print_filter_allows(&table->print_filter, r->data + offset,
                                r->size - offset);
}
