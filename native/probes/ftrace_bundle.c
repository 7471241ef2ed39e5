#include "probes/ftrace_bundle.h"

#include "core/fields.h"

#define BUNDLE(name) ST_FIELD_FTRACE_EVENT_BUNDLE_##name
#define COMPACT(name) ST_FIELD_FTRACE_EVENT_BUNDLE_COMPACT_SCHED_##name

/* The fields that every FtraceEvent has, and the offset of the kernel's
 * flags. */
enum { EVENT_TIMESTAMP = 1, EVENT_PID = 2, FLAGS_OFFSET = 2 };

static const uint8_t kColumnFields[ST_COMPACT_COLUMNS] = {
    COMPACT(SWITCH_TIMESTAMP),
    COMPACT(SWITCH_PREV_STATE),
    COMPACT(SWITCH_NEXT_PID),
    COMPACT(SWITCH_NEXT_PRIO),
    COMPACT(SWITCH_NEXT_COMM_INDEX),
    COMPACT(WAKING_TIMESTAMP),
    COMPACT(WAKING_PID),
    COMPACT(WAKING_TARGET_CPU),
    COMPACT(WAKING_PRIO),
    COMPACT(WAKING_COMM_INDEX),
    COMPACT(WAKING_COMMON_FLAGS)};

bool st_ftrace_event_is_valid(const struct st_ftrace_event* event) {
  for (uint32_t i = 0; i < event->field_count; i++) {
    const struct st_ftrace_field* f = &event->fields[i];
    bool is_number =
        f->kind <= ST_FTRACE_UNSIGNED || f->kind == ST_FTRACE_DEVICE;
    if (f->kind >= ST_FTRACE_KINDS ||
        (is_number && f->size != 1 && f->size != 2 && f->size != 4 &&
         f->size != 8))
      return false;
  }
  if (event->form <= ST_FTRACE_PLAIN)
    return true;
  const struct st_ftrace_field* f = event->fields;
  return event->form <= ST_FTRACE_COMPACT_WAKING && event->field_count == 4 &&
         f[0].kind == ST_FTRACE_SIGNED && f[1].kind == ST_FTRACE_SIGNED &&
         f[2].kind == ST_FTRACE_SIGNED && f[3].kind == ST_FTRACE_CHARS &&
         f[3].size == ST_COMM_SIZE;
}

/* --- fields */

static uint64_t read_unsigned(const uint8_t* p, size_t size) {
  uint64_t value = 0;
  memcpy(&value, p, size);
  return value;
}

static int64_t read_signed(const uint8_t* p, size_t size) {
  unsigned shift = 64 - 8 * (unsigned)size;
  return (int64_t)(read_unsigned(p, size) << shift) >> shift;
}

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

static void append_field(struct st_message* m, const struct st_ftrace_field* f,
                         const struct st_ftrace_record* r) {
  if (f->offset > r->size || f->size > r->size - f->offset)
    return;
  const uint8_t* p = r->data + f->offset;
  switch (f->kind) {
    case ST_FTRACE_SIGNED:
      st_message_append_varint(m, f->number, (uint64_t)read_signed(p, f->size));
      break;
    case ST_FTRACE_UNSIGNED:
      st_message_append_varint(m, f->number, read_unsigned(p, f->size));
      break;
    case ST_FTRACE_DEVICE:
      st_message_append_varint(m, f->number,
                               user_device(read_unsigned(p, f->size)));
      break;
    case ST_FTRACE_CHARS:
      append_string(m, f->number, p, f->size);
      break;
    case ST_FTRACE_REST:
      append_string(m, f->number, p, r->size - f->offset);
      break;
    case ST_FTRACE_U64_ARRAY:
      for (size_t i = 0; i + 8 <= f->size; i += 8)
        st_message_append_varint(m, f->number, read_unsigned(p + i, 8));
      break;
    default:
      append_location(m, f, r);
  }
}

/* --- plain events */

/* Writes the descriptor of an event, once in a bundle.  Returns false if the
 * bundle has no room for it. */
static bool describe(struct st_ftrace_bundle* b,
                     const struct st_ftrace_event* event, uint16_t id) {
  for (uint32_t i = 0; i < b->generic_count; i++) {
    if (b->generic[i] == id)
      return true;
  }
  if (b->generic_count == ST_FTRACE_MAX_GENERIC)
    return false;
  b->generic[b->generic_count++] = id;
  st_message_append_bytes(b->root, BUNDLE(GENERIC_EVENT_DESCRIPTORS),
                          event->descriptor, event->descriptor_size);
  return true;
}

static void add_plain(struct st_ftrace_bundle* b,
                      const struct st_ftrace_event* event,
                      const struct st_ftrace_record* r) {
  if (event->descriptor && !describe(b, event, st_ftrace_event_id(r)))
    return;
  struct st_message outer, inner;
  st_message_begin_nested(b->root, &outer, BUNDLE(EVENT));
  st_message_append_varint(&outer, EVENT_TIMESTAMP, r->time);
  st_message_append_varint(&outer, EVENT_PID, (uint32_t)st_ftrace_event_pid(r));
  st_message_begin_nested(&outer, &inner, event->number);
  for (uint32_t i = 0; i < event->field_count; i++)
    append_field(&inner, &event->fields[i], r);
  st_message_finalize(&inner);
  st_message_finalize(&outer);
}

/* --- compact events */

static uint32_t name_index(struct st_ftrace_bundle* b, const char* name) {
  uint64_t halves[2];
  memcpy(halves, name, sizeof halves);
  uint64_t hash = (halves[0] ^ halves[1] * 31) * 0x9E3779B97F4A7C15u;
  uint16_t* slot = &b->slots[hash >> 56];
  if (*slot && memcmp(b->names[*slot - 1], name, ST_COMM_SIZE) == 0)
    return *slot - 1u;
  uint32_t index = 0;
  while (index < b->name_count &&
         memcmp(b->names[index], name, ST_COMM_SIZE) != 0)
    index++;
  if (index == ST_FTRACE_MAX_NAMES)
    return 0;
  if (index == b->name_count)
    memcpy(b->names[b->name_count++], name, ST_COMM_SIZE);
  *slot = (uint16_t)(index + 1);
  return index;
}

static void add_column(struct st_ftrace_bundle* b,
                       enum st_compact_column column, uint64_t value) {
  st_packed_add_varint(&b->columns[column], value);
}

/* Adds a row to the columns from `first` on: the time, three numbers, and the
 * name.  Returns false if the record is too short. */
static bool add_row(struct st_ftrace_bundle* b,
                    const struct st_ftrace_event* event,
                    const struct st_ftrace_record* r,
                    enum st_compact_column first, uint64_t* time) {
  const struct st_ftrace_field* f = event->fields;
  for (int i = 0; i < 4; i++) {
    if ((size_t)f[i].offset + f[i].size > r->size)
      return false;
  }
  add_column(b, first, r->time - *time);
  *time = r->time;
  for (int i = 0; i < 3; i++)
    add_column(b, first + 1 + i,
               (uint64_t)read_signed(r->data + f[i].offset, f[i].size));
  add_column(b, first + 4, name_index(b, (const char*)r->data + f[3].offset));
  return true;
}

static bool add_compact(struct st_ftrace_bundle* b,
                        const struct st_ftrace_event* event,
                        const struct st_ftrace_record* r) {
  if (event->form == ST_FTRACE_COMPACT_SWITCH)
    return add_row(b, event, r, ST_SWITCH_TIMESTAMP, &b->switch_time);
  if (!add_row(b, event, r, ST_WAKING_TIMESTAMP, &b->waking_time))
    return false;
  add_column(b, ST_WAKING_FLAGS, r->data[FLAGS_OFFSET]);
  return true;
}

static void write_compact(struct st_ftrace_bundle* b) {
  if (!b->name_count)
    return;
  struct st_message compact;
  st_message_begin_nested(b->root, &compact, BUNDLE(COMPACT_SCHED));
  for (uint32_t i = 0; i < b->name_count; i++)
    append_string(&compact, COMPACT(INTERN_TABLE), (uint8_t*)b->names[i],
                  ST_COMM_SIZE);
  for (int i = 0; i < ST_COMPACT_COLUMNS; i++) {
    if (st_packed_size(&b->columns[i]))
      st_message_append_packed(&compact, kColumnFields[i], &b->columns[i]);
    b->columns[i].cur = b->columns[i].begin;
  }
  st_message_finalize(&compact);
}

/* --- the bundle */

void st_ftrace_bundle_init(struct st_ftrace_bundle* b,
                           const struct st_ftrace_table* table) {
  memset(b, 0, sizeof *b);
  b->table = table;
  for (int i = 0; i < ST_COMPACT_COLUMNS; i++)
    st_packed_init(&b->columns[i]);
}

void st_ftrace_bundle_free(struct st_ftrace_bundle* b) {
  for (int i = 0; i < ST_COMPACT_COLUMNS; i++)
    st_packed_free(&b->columns[i]);
}

void st_ftrace_bundle_begin(struct st_ftrace_bundle* b, uint32_t cpu,
                            bool lost_events, uint64_t previous_end,
                            struct st_message* root) {
  b->root = root;
  b->last_time = previous_end;
  b->switch_time = b->waking_time = 0;
  b->name_count = b->generic_count = b->error_count = 0;
  memset(b->slots, 0, sizeof b->slots);
  st_message_append_varint(root, BUNDLE(CPU), cpu);
  if (lost_events)
    st_message_append_varint(root, BUNDLE(LOST_EVENTS), 1);
  st_message_append_varint(root, BUNDLE(PREVIOUS_BUNDLE_END_TIMESTAMP),
                           previous_end);
}

void st_ftrace_bundle_add_error(struct st_ftrace_bundle* b, uint64_t time,
                                uint8_t status) {
  b->errors |= 1u << status;
  if (b->error_count++ >= ST_FTRACE_MAX_PARSE_ERRORS)
    return;
  struct st_message error;
  st_message_begin_nested(b->root, &error, BUNDLE(ERROR));
  st_message_append_varint(&error, BUNDLE(FTRACE_ERROR_TIMESTAMP), time);
  st_message_append_varint(&error, BUNDLE(FTRACE_ERROR_STATUS), status);
  st_message_finalize(&error);
}

void st_ftrace_bundle_add_page(struct st_ftrace_bundle* b, const uint8_t* data,
                               size_t size) {
  struct st_ftrace_page page;
  struct st_ftrace_record r;
  st_ftrace_page_open(&page, data, size);
  uint64_t page_time = page.time;
  while (st_ftrace_page_next(&page, &r)) {
    uint16_t id = st_ftrace_event_id(&r);
    const struct st_ftrace_event* event =
        id < b->table->count ? &b->table->events[id] : NULL;
    if (!event || event->form == ST_FTRACE_LEFT_OUT)
      continue;
    b->last_time = r.time;
    if (event->form == ST_FTRACE_PLAIN)
      add_plain(b, event, &r);
    else if (!add_compact(b, event, &r))
      st_ftrace_bundle_add_error(b, page_time, ST_FTRACE_SHORT_COMPACT);
  }
  if (page.status != ST_FTRACE_OK)
    st_ftrace_bundle_add_error(b, page_time, page.status);
}

void st_ftrace_bundle_end(struct st_ftrace_bundle* b) {
  write_compact(b);
  st_message_finalize(b->root);
}
