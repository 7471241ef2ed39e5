#include "probes/ftrace_bundle.h"

#include "core/fields.h"

#define BUNDLE(name) ST_FIELD_FTRACE_EVENT_BUNDLE_##name
#define COMPACT(name) ST_FIELD_FTRACE_EVENT_BUNDLE_COMPACT_SCHED_##name

/* The offset of the kernel's flags in an event. */
enum { FLAGS_OFFSET = 2 };

/* In how many slots a name is looked for. */
enum { NAME_PROBES = 4 };

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
  if (!event->descriptor || describe(b, event, st_ftrace_event_id(r)))
    st_ftrace_append_event(b->root, &b->addresses, event, r);
}

/* --- compact events */

static uint32_t add_name(struct st_ftrace_bundle* b, const char* name) {
  if (b->name_count == ST_FTRACE_MAX_NAMES)
    return 0;
  memcpy(b->names[b->name_count], name, ST_COMM_SIZE);
  return b->name_count++;
}

static bool is_name(const struct st_ftrace_bundle* b, uint32_t index,
                    const char* name) {
  return memcmp(b->names[index], name, ST_COMM_SIZE) == 0;
}

/* Returns the index of a name that has no slot. */
static uint32_t search_name(struct st_ftrace_bundle* b, const char* name) {
  for (uint32_t i = 0; i < b->name_count; i++) {
    if (is_name(b, i, name))
      return i;
  }
  return add_name(b, name);
}

/* Returns the index of a name that is not in its first slot. */
__attribute__((noinline)) static uint32_t find_name(struct st_ftrace_bundle* b,
                                                    uint32_t first,
                                                    const char* name) {
  for (uint32_t i = 0; i < NAME_PROBES; i++) {
    uint16_t* slot = &b->slots[(first + i) % ST_FTRACE_NAME_SLOTS];
    if (!*slot) {
      uint32_t index = add_name(b, name);
      *slot = (uint16_t)(index + 1);
      return index;
    }
    if (is_name(b, *slot - 1u, name))
      return *slot - 1u;
  }
  return search_name(b, name);
}

static inline uint32_t name_index(struct st_ftrace_bundle* b,
                                  const char* name) {
  uint64_t halves[2];
  memcpy(halves, name, sizeof halves);
  uint64_t hash = (halves[0] ^ halves[1] * 31) * 0x9E3779B97F4A7C15u;
  uint32_t first = (uint32_t)(hash >> 56);
  uint16_t slot = b->slots[first];
  return slot && is_name(b, slot - 1u, name) ? slot - 1u
                                             : find_name(b, first, name);
}

/* Writes a varint.  The sizes of times and ids vary too much for the processor
 * to predict, so those below 1 << 28 are written without a branch: their four
 * groups of 7 bits are spread to the bytes of a word.  Writes up to 10 bytes. */
static inline uint8_t* put_number(uint8_t* p, uint64_t value) {
  if (value >> 28)
    return st_put_varint(p, value);
  uint32_t bytes = (uint32_t)value;
  unsigned size = (unsigned)st_varint_size(value);
  bytes = (bytes & 0x00003FFF) | (bytes & 0x0FFFC000) << 2;
  bytes = (bytes & 0x007F007F) | (bytes & 0x3F803F80) << 1;
  bytes |= 0x00808080u >> (32 - 8 * size); /* All but the last byte. */
  memcpy(p, &bytes, sizeof bytes);
  return p + size;
}

/* Writes a number that is nearly always below 128.  Writes up to 10 bytes. */
static inline uint8_t* put_small(uint8_t* p, uint64_t value) {
  if (value >= 0x80)
    return st_put_varint(p, value);
  *p = (uint8_t)value;
  return p + 1;
}

static void lay_out(struct st_compact_layout* layout,
                    const struct st_ftrace_event* event) {
  *layout = (struct st_compact_layout){.event = event};
  for (int i = 0; i < 4; i++) {
    const struct st_ftrace_field* f = &event->fields[i];
    uint32_t end = (uint32_t)f->offset + f->size;
    layout->ends[i] = end;
    layout->shifts[i] = (uint8_t)(64 - 8 * f->size);
    layout->size = end > layout->size ? end : layout->size;
  }
}

/* Returns the layout of an event; NULL if the record is too short for it. */
static inline const struct st_compact_layout* layout_of(
    struct st_ftrace_bundle* b, const struct st_ftrace_event* event,
    const struct st_ftrace_record* r) {
  struct st_compact_layout* layout =
      &b->layouts[event->form == ST_FTRACE_COMPACT_WAKING];
  if (layout->event != event)
    lay_out(layout, event);
  return layout->size <= r->size ? layout : NULL;
}

/* Reads a signed number without a branch for its size: it is at the end of 8
 * bytes.  These may begin before the record, in the headers of record and page. */
static inline uint64_t read_number(const struct st_compact_layout* l, int i,
                                   const struct st_ftrace_record* r) {
  int64_t value;
  memcpy(&value, r->data + l->ends[i] - sizeof value, sizeof value);
  return (uint64_t)(value >> l->shifts[i]);
}

static inline uint32_t read_name(struct st_ftrace_bundle* b,
                                 const struct st_compact_layout* l,
                                 const struct st_ftrace_record* r) {
  return name_index(b, (const char*)r->data + l->ends[3] - ST_COMM_SIZE);
}

static inline uint64_t time_since(uint64_t* last, uint64_t time) {
  uint64_t passed = time - *last;
  *last = time;
  return passed;
}

static bool add_switch(struct st_ftrace_bundle* b,
                       const struct st_ftrace_event* event,
                       const struct st_ftrace_record* r) {
  const struct st_compact_layout* l = layout_of(b, event, r);
  if (!l)
    return false;
  uint8_t** at = &b->at[ST_SWITCH_TIMESTAMP];
  at[0] = put_number(at[0], time_since(&b->switch_time, r->time));
  at[1] = put_small(at[1], read_number(l, 0, r));
  at[2] = put_number(at[2], read_number(l, 1, r));
  at[3] = put_small(at[3], read_number(l, 2, r));
  at[4] = put_small(at[4], read_name(b, l, r));
  return true;
}

static bool add_waking(struct st_ftrace_bundle* b,
                       const struct st_ftrace_event* event,
                       const struct st_ftrace_record* r) {
  const struct st_compact_layout* l = layout_of(b, event, r);
  if (!l)
    return false;
  uint8_t** at = &b->at[ST_WAKING_TIMESTAMP];
  at[0] = put_number(at[0], time_since(&b->waking_time, r->time));
  at[1] = put_number(at[1], read_number(l, 0, r));
  at[2] = put_small(at[2], read_number(l, 1, r));
  at[3] = put_small(at[3], read_number(l, 2, r));
  at[4] = put_small(at[4], read_name(b, l, r));
  at[5] = put_small(at[5], r->data[FLAGS_OFFSET]);
  return true;
}

static bool add_compact(struct st_ftrace_bundle* b,
                        const struct st_ftrace_event* event,
                        const struct st_ftrace_record* r) {
  return event->form == ST_FTRACE_COMPACT_SWITCH ? add_switch(b, event, r)
                                                 : add_waking(b, event, r);
}

/* Makes room in each column for the rows of one page.  The record of a row has
 * at least a header of 4 bytes, and a name.  Returns false when out of memory. */
static bool begin_rows(struct st_ftrace_bundle* b, size_t page_size) {
  size_t rows = page_size / (4 + ST_COMM_SIZE) + 1;
  size_t room = rows * ST_MAX_VARINT;
  for (int i = 0; i < ST_COMPACT_COLUMNS; i++) {
    struct st_packed* column = &b->columns[i];
    if ((size_t)(column->end - column->cur) < room &&
        !st_packed_grow(column, room))
      return false;
    b->at[i] = column->cur;
  }
  return true;
}

static void end_rows(struct st_ftrace_bundle* b) {
  for (int i = 0; i < ST_COMPACT_COLUMNS; i++)
    b->columns[i].cur = b->at[i];
}

static void write_compact(struct st_ftrace_bundle* b) {
  if (!b->name_count)
    return;
  struct st_message compact;
  st_message_begin_nested(b->root, &compact, BUNDLE(COMPACT_SCHED));
  for (uint32_t i = 0; i < b->name_count; i++)
    st_message_append_bytes(&compact, COMPACT(INTERN_TABLE), b->names[i],
                            strnlen(b->names[i], ST_COMM_SIZE));
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
  b->addresses.max = ST_FTRACE_MAX_ADDRESSES;
  for (int i = 0; i < ST_COMPACT_COLUMNS; i++)
    st_packed_init(&b->columns[i]);
}

void st_ftrace_bundle_free(struct st_ftrace_bundle* b) {
  for (int i = 0; i < ST_COMPACT_COLUMNS; i++)
    st_packed_free(&b->columns[i]);
  st_address_numbers_clear(&b->addresses);
}

void st_ftrace_bundle_begin(struct st_ftrace_bundle* b, uint32_t cpu,
                            bool lost_events, uint64_t previous_end,
                            struct st_message* root) {
  b->root = root;
  b->last_time = previous_end;
  b->switch_time = b->waking_time = 0;
  b->name_count = b->generic_count = b->error_count = 0;
  memset(b->slots, 0, sizeof b->slots);
  st_address_numbers_clear(&b->addresses);
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
  if (!begin_rows(b, size)) {
    st_ftrace_bundle_add_error(b, page_time, ST_FTRACE_READ_ERROR);
    return;
  }
  while (st_ftrace_page_next(&page, &r)) {
    uint16_t id = st_ftrace_event_id(&r);
    const struct st_ftrace_event* event =
        id < b->table->count ? &b->table->events[id] : NULL;
    if (!event || event->form == ST_FTRACE_LEFT_OUT ||
        (event->form == ST_FTRACE_PRINT &&
         !st_ftrace_is_allowed(b->table, event, &r)))
      continue;
    b->last_time = r.time;
    if (event->form == ST_FTRACE_PLAIN || event->form == ST_FTRACE_PRINT)
      add_plain(b, event, &r);
    else if (!add_compact(b, event, &r))
      st_ftrace_bundle_add_error(b, page_time, ST_FTRACE_SHORT_COMPACT);
  }
  end_rows(b);
  if (page.status != ST_FTRACE_OK)
    st_ftrace_bundle_add_error(b, page_time, page.status);
}

void st_ftrace_bundle_end(struct st_ftrace_bundle* b) {
  write_compact(b);
  st_message_finalize(b->root);
}
