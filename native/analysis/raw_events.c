#include "raw_events.h"

#include <stdlib.h>
#include <string.h>

#include "core/fields.h"
#include "importer.h"
#include "kernel_event_fields.h"

enum {
  /* FtraceEvent */
  SCHED_SWITCH = 4,
  SCHED_WAKING = 20,
  GENERIC = 327,
  FIRST_DESCRIBED = 65536,
  /* GenericEventDescriptor, DescriptorProto, FieldDescriptorProto */
  DESCRIPTOR_FIELD = 1,
  DESCRIPTOR_EVENT = 2,
  EVENT_NAME = 1,
  EVENT_FIELD = 2,
  FIELD_NAME = 1,
  FIELD_NUMBER = 3,
  FIELD_TYPE = 5,
  /* GenericFtraceEvent.Field */
  GENERIC_TEXT = 3,
  GENERIC_INT = 4,
  GENERIC_UINT = 5,
  KNOWN_EVENTS = sizeof kKernelEventFields / sizeof *kKernelEventFields,
};

/* The letters of FieldDescriptorProto.Type; 0 for none. */
static const char kTypes[] = "\0dfiuiuuis--suiiizz";

void st_raw_events_init(struct st_raw_events* r, struct st_storage* s) {
  st_arg_sets_init(&r->arg_sets, s, ST_RAW_ARGS_TABLE);
}

static void set_field(struct st_raw_kind* kind, uint32_t number, char type,
                      st_string key) {
  kind->keys[number] = key;
  kind->types[number] = type;
}

/* Reads the fields of an event: a letter and a name each. */
static void read_fields(struct st_importer* m, struct st_raw_kind* kind,
                        const char* fields) {
  for (uint32_t i = 1; *fields && i < ST_RAW_FIELDS; i++) {
    size_t size = strcspn(fields, " ");
    set_field(
        kind, i, fields[0],
        st_string_add(&m->storage.strings, fields + 1, size ? size - 1 : 0));
    fields += size + (fields[size] == ' ');
  }
}

bool st_raw_is_generic(uint32_t field) {
  return field >= FIRST_DESCRIBED;
}

/* Returns the key of an event in by_field: kernels of other machines have other
 * descriptors. */
static uint64_t key_of(const struct st_importer* m, uint32_t field) {
  return (uint64_t)m->machine->cpus.machine << 32 | field;
}

bool st_raw_is_known(const struct st_importer* m, uint32_t field) {
  return field < KNOWN_EVENTS ||
         (st_raw_is_generic(field) &&
          st_map_get(&m->raw.by_field, key_of(m, field)));
}

/* Returns the kind of an event that is known. */
static const struct st_raw_kind* kind_of(struct st_importer* m,
                                         uint32_t field) {
  struct st_raw_events* r = &m->raw;
  uint32_t* index = st_map_at(&r->by_field, key_of(m, field));
  if (!*index) {
    struct st_raw_kind kind = {0};
    if (kKernelEventFields[field].name) {
      kind.name = st_intern(&m->storage, kKernelEventFields[field].name);
      read_fields(m, &kind, kKernelEventFields[field].fields);
    }
    *ST_PUSH(&r->kinds) = kind;
    *index = r->kinds.size;
  }
  return &r->kinds.data[*index - 1];
}

/* Reads a DescriptorProto.  Returns false if it is invalid. */
static bool read_descriptor(struct st_importer* m, struct st_raw_kind* kind,
                            struct st_field event) {
  struct st_decoder d;
  struct st_field f, parts[FIELD_TYPE + 1];
  kind->name = st_field_text(&m->storage, st_message_find(event, EVENT_NAME));
  st_decoder_init(&d, event.data, event.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number != EVENT_FIELD || !f.data)
      continue;
    st_message_read(f, parts, FIELD_TYPE + 1);
    uint64_t number = parts[FIELD_NUMBER].value, type = parts[FIELD_TYPE].value;
    if (number >= ST_RAW_FIELDS || type >= sizeof kTypes - 1)
      return false;
    set_field(kind, (uint32_t)number, kTypes[type],
              st_field_text(&m->storage, parts[FIELD_NAME]));
  }
  return true;
}

void st_raw_add_descriptor(struct st_importer* m, struct st_field descriptor) {
  struct st_raw_events* r = &m->raw;
  struct st_field f[DESCRIPTOR_EVENT + 1];
  struct st_raw_kind kind = {0};
  st_message_read(descriptor, f, DESCRIPTOR_EVENT + 1);
  uint32_t field = (uint32_t)f[DESCRIPTOR_FIELD].value;
  if (field < FIRST_DESCRIBED || st_map_get(&r->by_field, key_of(m, field)) ||
      r->kinds.size >= ST_MAX_RAW_KINDS)
    return;
  if (!read_descriptor(m, &kind, f[DESCRIPTOR_EVENT])) {
    m->ftrace.descriptor_errors++;
    return;
  }
  *ST_PUSH(&r->kinds) = kind;
  *st_map_at(&r->by_field, key_of(m, field)) = r->kinds.size;
}

/* Counts an event of the kernel.  Returns whether it gets a row. */
static bool count_event(struct st_raw_events* r, int64_t ts) {
  if (!r->has_ts || ts < r->first_ts)
    r->first_ts = ts;
  if (!r->has_ts || ts > r->last_ts)
    r->last_ts = ts;
  r->has_ts = true;
  r->count++;
  return r->is_kept;
}

/* Stores the arguments.  Returns the cell of their set. */
static struct st_cell store_args(struct st_importer* m) {
  struct st_raw_events* r = &m->raw;
  uint32_t set = st_arg_sets_add(&r->arg_sets, &m->storage, &r->args);
  st_arg_list_clear(&r->args);
  return st_row(set);
}

static void add_row(struct st_importer* m, int64_t ts, st_string name,
                    uint32_t cpu, uint32_t utid, uint32_t flags) {
  struct st_table* t = &m->storage.tables[ST_KERNEL_EVENT_TABLE];
  struct st_cell cells[ST_KERNEL_EVENT_COLUMNS] = {
      [ST_KERNEL_EVENT_id] = st_int(t->rows),
      [ST_KERNEL_EVENT_ts] = st_int(ts),
      [ST_KERNEL_EVENT_name] = st_text(name),
      [ST_KERNEL_EVENT_utid] = st_int(utid),
      [ST_KERNEL_EVENT_arg_set_id] = store_args(m),
      [ST_KERNEL_EVENT_common_flags] = st_int(flags),
      [ST_KERNEL_EVENT_ucpu] = st_int(st_ucpu(&m->machine->cpus, cpu)),
  };
  st_table_add(t, cells);
}

static void add_int(struct st_importer* m, st_string key, int64_t value) {
  st_arg_add_int(&m->raw.args, key, ST_ARG_INT, value);
}

static void add_real(struct st_importer* m, st_string key, double value) {
  st_arg_list_add(&m->raw.args,
                  (struct st_arg){key, key, ST_ARG_REAL, {.f = value}});
}

/* Returns the name of a kernel symbol; 0 if it is missing.  The lookup isn't
 * counted: ftrace.c counts it. */
static st_string symbol(struct st_importer* m, uint32_t generation,
                        uint64_t iid) {
  uint64_t failed = m->sequences.failed_lookups;
  st_string name = st_interned_text(&m->sequences, generation,
                                    ST_FIELD_INTERNED_DATA_KERNEL_SYMBOLS, iid);
  m->sequences.failed_lookups = failed;
  return name;
}

static void add_number(struct st_importer* m, st_string key, char type,
                       uint64_t value, uint32_t generation) {
  uint32_t low = (uint32_t)value;
  st_string name = type == 'a' ? symbol(m, generation, value) : 0;
  float single;
  double real;
  memcpy(&single, &low, sizeof single);
  memcpy(&real, &value, sizeof real);
  if (name)
    st_arg_add_text(&m->raw.args, key, name);
  else if (type == 'a' || type == 'u')
    st_arg_add_int(&m->raw.args, key, ST_ARG_UINT, (int64_t)value);
  else if (type == 'z')
    add_int(m, key, (int64_t)(value >> 1 ^ (0 - (value & 1))));
  else if (type == 'f' || type == 'd')
    add_real(m, key, type == 'f' ? (double)single : real);
  else
    add_int(m, key, (int64_t)value);
}

static void add_fields(struct st_importer* m, const struct st_raw_kind* kind,
                       const struct st_kernel_event* e) {
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, e->message.data, e->message.size);
  while (st_decoder_next(&d, &f)) {
    char type = (char)(f.number < ST_RAW_FIELDS ? kind->types[f.number] : 0);
    if (!type || type == '-' || (type == 's') != (f.data != NULL))
      continue;
    if (f.data)
      st_arg_add_text(&m->raw.args, kind->keys[f.number],
                      st_string_add(&m->storage.strings, f.data, f.size));
    else
      add_number(m, kind->keys[f.number], type, f.value, e->generation);
  }
}

/* Adds the fields of a GenericFtraceEvent, which names them itself. */
static void add_generic_fields(struct st_importer* m,
                               const struct st_kernel_event* e) {
  struct st_decoder d;
  struct st_field f, parts[GENERIC_UINT + 1];
  st_decoder_init(&d, e->message.data, e->message.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number != EVENT_FIELD || !f.data)
      continue;
    st_message_read(f, parts, GENERIC_UINT + 1);
    st_string key = st_field_text(&m->storage, parts[FIELD_NAME]);
    if (parts[GENERIC_INT].number)
      add_int(m, key, (int64_t)parts[GENERIC_INT].value);
    else if (parts[GENERIC_UINT].number)
      add_int(m, key, (int64_t)parts[GENERIC_UINT].value);
    else if (parts[GENERIC_TEXT].number)
      st_arg_add_text(&m->raw.args, key,
                      st_field_text(&m->storage, parts[GENERIC_TEXT]));
  }
}

/* Counts the fields that the descriptor of a generic event doesn't name. */
static void count_unknown_fields(struct st_importer* m,
                                 const struct st_kernel_event* e) {
  const struct st_raw_kind* kind = kind_of(m, e->field);
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, e->message.data, e->message.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number >= ST_RAW_FIELDS || !kind->types[f.number])
      m->ftrace.descriptor_errors++;
  }
}

void st_raw_kernel_event(struct st_importer* m, const struct st_kernel_event* e,
                         uint32_t utid) {
  if (st_raw_is_generic(e->field))
    count_unknown_fields(m, e);
  if (!count_event(&m->raw, e->ts))
    return;
  st_string name;
  if (e->field == GENERIC) {
    name = st_field_text(&m->storage, st_message_find(e->message, EVENT_NAME));
    add_generic_fields(m, e);
  } else {
    const struct st_raw_kind* kind = kind_of(m, e->field);
    name = kind->name;
    add_fields(m, kind, e);
  }
  add_row(m, e->ts, name, e->cpu, utid, 0);
}

void st_raw_switch(struct st_importer* m, const struct st_raw_switch* s) {
  if (!count_event(&m->raw, s->ts))
    return;
  const struct st_raw_kind* kind = kind_of(m, SCHED_SWITCH);
  st_arg_add_text(&m->raw.args, kind->keys[1], s->prev_comm);
  add_int(m, kind->keys[2], s->prev_pid);
  add_int(m, kind->keys[3], s->prev_priority);
  add_int(m, kind->keys[4], s->prev_state);
  st_arg_add_text(&m->raw.args, kind->keys[5], s->next_comm);
  add_int(m, kind->keys[6], s->next_pid);
  add_int(m, kind->keys[7], s->next_priority);
  add_row(m, s->ts, kind->name, s->cpu, s->prev_utid, 0);
}

void st_raw_compact_switch(struct st_importer* m, uint32_t cpu,
                           const struct st_event* e,
                           const struct st_running* last) {
  /* The name of the thread may have changed while it ran. */
  struct st_cell name = st_table_get(&m->storage.tables[ST_THREAD_TABLE],
                                     last->utid, ST_THREAD_name);
  st_raw_switch(m, &(struct st_raw_switch){
                       .ts = e->ts,
                       .cpu = cpu,
                       .prev_utid = last->utid,
                       .prev_pid = last->pid,
                       .prev_comm = name.valid ? (st_string)name.i : 0,
                       .prev_priority = last->priority,
                       .prev_state = e->size,
                       .next_pid = e->pid,
                       .next_comm = e->comm,
                       .next_priority = e->priority});
}

void st_raw_compact_waking(struct st_importer* m, uint32_t cpu,
                           const struct st_event* e, uint32_t utid) {
  if (!count_event(&m->raw, e->ts))
    return;
  const struct st_raw_kind* kind = kind_of(m, SCHED_WAKING);
  st_arg_add_text(&m->raw.args, kind->keys[1], e->comm);
  add_int(m, kind->keys[2], e->pid);
  add_int(m, kind->keys[3], e->woken.priority);
  add_int(m, kind->keys[5], e->woken.target_cpu);
  add_row(m, e->ts, kind->name, cpu, utid, e->size);
}

void st_raw_chrome_event(struct st_importer* m, int64_t ts, const char* name,
                         uint32_t utid) {
  struct st_table* t = &m->storage.tables[ST_CHROME_EVENT_TABLE];
  m->raw.count++;
  if (!m->raw.is_kept)
    return;
  struct st_cell cells[ST_CHROME_EVENT_COLUMNS] = {
      [ST_CHROME_EVENT_id] = st_int(t->rows),
      [ST_CHROME_EVENT_ts] = st_int(ts),
      [ST_CHROME_EVENT_name] = st_text(st_intern(&m->storage, name)),
      [ST_CHROME_EVENT_utid] = st_int(utid),
      [ST_CHROME_EVENT_arg_set_id] = store_args(m),
  };
  st_table_add(t, cells);
}

void st_raw_finish(struct st_importer* m) {
  struct st_table* t = &m->storage.tables[ST_KERNEL_TIME_TABLE];
  const struct st_raw_events* r = &m->raw;
  if (!r->has_ts)
    return;
  st_table_add(t, &(struct st_cell){true, {.i = r->first_ts}});
  st_table_add(t, &(struct st_cell){true, {.i = r->last_ts}});
}

void st_raw_events_free(struct st_raw_events* r) {
  st_map_free(&r->by_field);
  st_map_free(&r->arg_sets.by_hash);
  st_arg_list_free(&r->args);
  free(r->kinds.data);
}
