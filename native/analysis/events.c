/* Parses track events, in the order of time: slices, counters, flows, args. */
#include <stdlib.h>
#include <string.h>

#include "core/fields.h"
#include "counter_values.h"
#include "event_parts.h"
#include "parsed_event.h"

#define FIELD(name) ST_FIELD_TRACK_EVENT_##name
#define TYPE(name) ST_ENUM_TRACK_EVENT_TYPE_##name

static void add_category(struct st_importer* m, struct st_parsed_event* p,
                         st_string category) {
  if (!category)
    return;
  if (!p->categories++) {
    p->category = category;
    return;
  }
  struct st_string_pool* pool = &m->storage.strings;
  size_t a, b;
  st_string_text(pool, p->category, &a);
  st_string_text(pool, category, &b);
  char* joined = st_bytes_take(&m->arena, a + b + 1);
  memcpy(joined, st_string_text(pool, p->category, &a), a);
  joined[a] = ',';
  memcpy(joined + a + 1, st_string_text(pool, category, &b), b);
  p->category = st_string_add(pool, joined, a + b + 1);
}

static void read_category_iids(struct st_importer* m, struct st_parsed_event* p,
                               struct st_field f) {
  const uint8_t *at = f.data, *end = f.data + f.size;
  uint64_t iid = f.value;
  if (!f.data) {
    add_category(
        m, p,
        st_interned_text(&m->sequences, p->event->generation,
                         ST_FIELD_INTERNED_DATA_EVENT_CATEGORIES, iid));
    return;
  }
  while (at && at < end) {
    at = st_get_varint(at, end, &iid);
    if (at)
      add_category(
          m, p,
          st_interned_text(&m->sequences, p->event->generation,
                           ST_FIELD_INTERNED_DATA_EVENT_CATEGORIES, iid));
  }
}

static void read_field(struct st_importer* m, struct st_parsed_event* p,
                       struct st_field f) {
  switch (f.number) {
    case FIELD(CATEGORY_IIDS):
      read_category_iids(m, p, f);
      break;
    case FIELD(CATEGORIES):
      if (f.data)
        add_category(m, p, st_string_add(&m->storage.strings, f.data, f.size));
      break;
    case FIELD(NAME_IID):
      p->name_iid = f.value;
      break;
    case FIELD(NAME):
      if (f.data)
        p->name = st_string_add(&m->storage.strings, f.data, f.size);
      break;
    case FIELD(TYPE):
      p->type = f.value;
      break;
    case FIELD(TRACK_UUID):
      p->track_uuid = f.value;
      p->has_track = true;
      break;
    case FIELD(FLOW_IDS):
      p->has_flows = true;
      break;
    case FIELD(TERMINATING_FLOW_IDS):
      p->has_terminating = true;
      break;
    case FIELD(THREAD_TIME_ABSOLUTE_US):
      p->counts.has_time = true;
      p->counts.time = (int64_t)(f.value * 1000);
      break;
    case FIELD(THREAD_INSTRUCTION_COUNT_ABSOLUTE):
      p->counts.has_instructions = true;
      p->counts.instructions = (int64_t)f.value;
      break;
    case FIELD(THREAD_TIME_DELTA_US):
    case FIELD(THREAD_INSTRUCTION_COUNT_DELTA):
      m->counts.unread_fields++;
      break;
    case FIELD(LEGACY_EVENT):
      if (f.data)
        st_legacy_read(&p->legacy, f);
      break;
    default:
      break;
  }
}

/* Names the event's only category by its iid, which is unknown. */
static void name_unknown_category(struct st_importer* m,
                                  struct st_parsed_event* p, uint64_t iid) {
  char text[40];
  size_t size = 0;
  char digits[24];
  size_t n = 0;
  do
    digits[n++] = (char)('0' + iid % 10);
  while (iid /= 10);
  memcpy(text, "unknown(", 8);
  size = 8;
  while (n)
    text[size++] = digits[--n];
  text[size++] = ')';
  p->category = st_string_add(&m->storage.strings, text, size);
}

static void read_event(struct st_importer* m, struct st_parsed_event* p) {
  struct st_decoder d;
  struct st_field f;
  uint64_t iids = 0, strings = 0, iid = 0;
  st_decoder_init(&d, p->event->data, p->event->size);
  while (st_decoder_next(&d, &f)) {
    read_field(m, p, f);
    p->parts |= st_parts_of(f.number);
    if (f.number == FIELD(CATEGORY_IIDS) && !f.data) {
      iids++;
      iid = f.value;
    }
    strings += f.number == FIELD(CATEGORIES);
  }
  if (iids == 1 && !strings && !p->category)
    name_unknown_category(m, p, iid);
  uint64_t name = p->name_iid ? p->name_iid : p->legacy.name_iid;
  if (name)
    p->name = st_interned_text(&m->sequences, p->event->generation,
                               ST_FIELD_INTERNED_DATA_EVENT_NAMES, name);
}

/* Returns the thread that a sequence belongs to; ST_NO_ROW if it has none.  A
 * slice of the sequence on another track refers to this thread. */
static uint32_t sequence_thread(struct st_importer* m,
                                const struct st_sequence* sequence) {
  return sequence->has_thread
             ? st_thread_get(&m->processes, sequence->tid, sequence->pid)
             : ST_NO_ROW;
}

static enum st_use use_of(const struct st_parsed_event* p) {
  switch (p->type) {
    case TYPE(SLICE_BEGIN):
      return ST_USE_BEGIN;
    case TYPE(SLICE_END):
      return ST_USE_END;
    case TYPE(COUNTER):
      return ST_USE_COUNTER;
    default:
      return ST_USE_INSTANT;
  }
}

/* Returns whether an event without a track belongs to the thread of its
 * sequence, or to one that its legacy fields name. */
static bool names_thread(const struct st_parsed_event* p, bool has_thread) {
  const struct st_legacy_event* l = &p->legacy;
  return l->has_pid ||
         (has_thread && (l->has_tid || !p->has_track || !p->type));
}

/* Returns false for the ids of the idle thread. */
static bool find_named_thread(struct st_importer* m, struct st_parsed_event* p,
                              const struct st_sequence* sequence) {
  const struct st_legacy_event* l = &p->legacy;
  int64_t pid = l->has_pid ? l->pid : sequence->pid;
  int64_t tid = l->has_pid ? st_sandboxed_tid(-1, pid) : sequence->tid;
  bool is_sandboxed = sequence->tid > UINT32_MAX;
  if (l->has_tid)
    tid = is_sandboxed ? st_sandboxed_tid(l->tid, pid) : l->tid;
  if ((l->has_pid || l->has_tid) && (!pid || !tid))
    return false;
  p->utid = st_thread_get(&m->processes, tid, pid);
  p->upid = m->processes.threads.data[p->utid].upid;
  p->is_thread_track = true;
  return true;
}

/* Finds the thread or process of the event.  Returns false if its ids are
 * invalid, or the ancestors of its track. */
static bool find_owner(struct st_importer* m, struct st_parsed_event* p) {
  const struct st_generation* g =
      &m->sequences.generations.data[p->event->generation];
  const struct st_sequence* sequence =
      &m->sequences.sequences.data[g->sequence];
  uint64_t uuid = p->has_track ? p->track_uuid : g->defaults.track_uuid;
  if (!uuid && names_thread(p, sequence->has_thread))
    return find_named_thread(m, p, sequence);
  struct st_track* track = st_tracks_resolve(&m->tracks, uuid);
  if (!track)
    return false;
  if (track->scope == ST_SCOPE_PROCESS)
    p->upid = track->owner;
  if (track->scope == ST_SCOPE_THREAD) {
    p->utid = track->owner;
    p->upid = m->processes.threads.data[p->utid].upid;
  } else if (uuid) {
    uint32_t utid = sequence_thread(m, sequence);
    if (utid != ST_NO_ROW &&
        (track->scope == ST_SCOPE_GLOBAL ||
         m->processes.threads.data[utid].upid == track->owner))
      p->passthrough = utid;
  }
  p->track_uuid = uuid;
  return true;
}

void st_event_find_row(struct st_importer* m, struct st_parsed_event* p,
                       enum st_use use) {
  p->row = p->is_thread_track
               ? st_tracks_thread_row(&m->tracks, p->utid)
               : st_tracks_row(&m->tracks, p->track_uuid, use, p->name);
}

uint32_t st_add_counter(struct st_importer* m, int64_t ts, uint32_t row,
                        double value) {
  struct st_table* t = &m->storage.tables[ST_COUNTER_TABLE];
  struct st_cell cells[ST_COUNTER_COLUMNS] = {
      [ST_COUNTER_id] = st_int(t->rows),
      [ST_COUNTER_ts] = st_int(ts),
      [ST_COUNTER_track_id] = st_int(row),
      [ST_COUNTER_value] = st_real(value),
  };
  return st_table_add(t, cells);
}

static void add_thread_counter(struct st_importer* m,
                               const struct st_parsed_event* p,
                               const char* type, const char* name,
                               double value) {
  struct st_fixed_track f = {.type = type,
                             .name = st_intern(&m->storage, name),
                             .is_counter = true,
                             .dimensions = {{"utid", .number = p->utid}}};
  st_add_counter(m, p->event->ts, st_tracks_fixed_row(&m->tracks, &f), value);
}

/* Adds the event's thread time and instruction count as counter values. */
static void add_legacy_counters(struct st_importer* m,
                                const struct st_parsed_event* p) {
  if (p->utid == ST_NO_ROW)
    return;
  if (p->counts.has_time)
    add_thread_counter(m, p, "thread_time", "thread_time",
                       (double)p->counts.time);
  if (p->counts.has_instructions)
    add_thread_counter(m, p, "thread_instructions", "thread_instruction_count",
                       (double)p->counts.instructions);
}

static int64_t to_int(double value) {
  return value >= -9.2e18 && value <= 9.2e18 ? (int64_t)value : 0;
}

/* Adds the extra counters of the event.  Counters of the thread's clocks are
 * also stored in the event's slice. */
static void add_extra_counters(struct st_importer* m,
                               struct st_parsed_event* p) {
  const uint8_t* at = p->event->tail;
  uint32_t count = at ? *at++ : 0, number;
  double value;
  for (uint32_t i = 0; i < count; i++) {
    at = st_counter_value_get(at, &number, &value);
    uint64_t uuid = m->tracks.tracks.data[number].uuid;
    bool is_own = p->type == TYPE(COUNTER) && i == 0;
    if (is_own || !st_tracks_resolve(&m->tracks, uuid))
      continue;
    uint32_t row = st_tracks_row(&m->tracks, uuid, ST_USE_COUNTER, 0);
    st_add_counter(m, p->event->ts, row, value);
    st_string name = st_tracks_row_name(&m->tracks, row);
    if (name == st_intern(&m->storage, "thread_time")) {
      p->counts.has_time = true;
      p->counts.time = to_int(value);
    } else if (name == st_intern(&m->storage, "thread_instruction_count")) {
      p->counts.has_instructions = true;
      p->counts.instructions = to_int(value);
    }
  }
}

/* Continues the event's flows in its slice; ends them if `terminating`. */
static void add_flows(struct st_importer* m, const struct st_parsed_event* p,
                      uint32_t slice, bool terminating) {
  uint32_t field = terminating
                       ? (p->has_terminating ? FIELD(TERMINATING_FLOW_IDS)
                                             : FIELD(TERMINATING_FLOW_IDS_OLD))
                       : (p->has_flows ? FIELD(FLOW_IDS) : FIELD(FLOW_IDS_OLD));
  void (*apply)(struct st_flows*, uint64_t, uint32_t) =
      terminating ? st_flow_end : st_flow_continue;
  bool is_fixed = terminating ? p->has_terminating : p->has_flows;
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, p->event->data, p->event->size);
  while (st_decoder_next(&d, &f)) {
    if (f.number != field)
      continue;
    if (!f.data)
      apply(&m->flows, f.value, slice);
    const uint8_t *at = f.data, *end = f.data + f.size;
    uint64_t id;
    while (f.data && at && at < end) {
      at = st_get_element(at, end, is_fixed ? ST_WIRE_FIXED64 : ST_WIRE_VARINT,
                          &id);
      if (at)
        apply(&m->flows, id, slice);
    }
  }
}

static void add_all_flows(struct st_importer* m,
                          const struct st_parsed_event* p, uint32_t slice) {
  st_legacy_add_flow(m, p, slice);
  if (p->parts & ST_PART_FLOWS) {
    add_flows(m, p, slice, false);
    add_flows(m, p, slice, true);
  }
}

static void add_passthrough(struct st_importer* m,
                            const struct st_parsed_event* p,
                            struct st_arg_list* args) {
  st_string key = st_intern(&m->storage, "legacy_event.passthrough_utid");
  for (uint32_t i = 0; i < args->args.size; i++) {
    if (args->args.data[i].key == key)
      return;
  }
  st_arg_add_int(args, key, ST_ARG_UINT, p->passthrough);
}

static void add_args(struct st_importer* m, const struct st_parsed_event* p,
                     struct st_arg_list* args) {
  st_parse_event_args(m, p->event, p->parts, p->utid, p->source_id, args);
  if (p->passthrough != ST_NO_ROW)
    add_passthrough(m, p, args);
  char phase = p->type ? 0 : (char)p->legacy.phase;
  if (phase && strchr("RSTp", phase))
    st_arg_add_text(args, st_intern(&m->storage, "legacy_event.phase"),
                    st_string_add(&m->storage.strings, &phase, 1));
}

void st_event_begin_slice(struct st_importer* m, struct st_parsed_event* p,
                          int64_t dur) {
  struct st_arg_list* args;
  struct st_arg_list none = {0};
  uint32_t row = st_slice_begin(&m->slices, p->row, p->event->ts, dur,
                                p->category, p->name, &args);
  if (row == ST_NO_ROW)
    return;
  st_flows_slice_begins(&m->flows, p->row, row);
  st_slice_set_counts(&m->slices, row, p->counts, dur == 0);
  add_args(m, p, args ? args : &none);
  st_arg_list_free(&none);
  add_all_flows(m, p, row);
}

void st_event_end_slice(struct st_importer* m, struct st_parsed_event* p) {
  struct st_arg_list* args;
  uint32_t row = st_slice_end(&m->slices, p->row, p->event->ts, p->category,
                              p->name, &args, p->counts);
  if (row == ST_NO_ROW)
    return;
  add_args(m, p, args);
  add_all_flows(m, p, row);
  st_slice_closed(&m->slices, p->row, row);
}

static void add_counter_event(struct st_importer* m,
                              struct st_parsed_event* p) {
  uint32_t number;
  double value;
  st_counter_value_get(p->event->tail + 1, &number, &value);
  uint32_t row = st_add_counter(m, p->event->ts, p->row, value);
  struct st_arg_list args = {0};
  add_args(m, p, &args);
  uint32_t set = st_arg_sets_add(&m->arg_sets, &m->storage, &args);
  if (set != ST_NO_ROW)
    st_table_set(&m->storage.tables[ST_COUNTER_TABLE], row,
                 ST_COUNTER_arg_set_id, st_int(set));
  st_arg_list_free(&args);
}

void st_parse_event(struct st_importer* m, const struct st_event* e) {
  struct st_parsed_event p = {.event = e,
                              .utid = ST_NO_ROW,
                              .upid = ST_NO_ROW,
                              .passthrough = ST_NO_ROW};
  m->tracks.sequence = st_sequences_id(&m->sequences, e->generation);
  read_event(m, &p);
  if (!find_owner(m, &p) || !st_legacy_find_owner(&p)) {
    m->counts.parser_errors++;
    return;
  }
  add_legacy_counters(m, &p);
  add_extra_counters(m, &p);
  if (p.type > TYPE(COUNTER)) {
    m->counts.unread_events += p.utid != ST_NO_ROW;
    st_event_add_raw(m, &p);
    return;
  }
  if (p.type)
    st_event_find_row(m, &p, use_of(&p));
  switch (p.type) {
    case TYPE(SLICE_BEGIN):
      st_event_begin_slice(m, &p, -1);
      break;
    case TYPE(SLICE_END):
      st_event_end_slice(m, &p);
      break;
    case TYPE(INSTANT):
      st_event_begin_slice(m, &p, 0);
      break;
    case TYPE(COUNTER):
      add_counter_event(m, &p);
      break;
    default:
      st_legacy_parse(m, &p);
  }
}
