/* Parses track events, in the order of time: slices, counters, flows, args. */
#include <stdlib.h>
#include <string.h>

#include "core/fields.h"
#include "importer.h"

#define FIELD(name) ST_FIELD_TRACK_EVENT_##name
#define LEGACY(name) ST_FIELD_TRACK_EVENT_LEGACY_EVENT_##name
#define TYPE(name) ST_ENUM_TRACK_EVENT_TYPE_##name

/* A track event while it is parsed. */
struct parsed {
  const struct st_event* event;
  st_string category, name;
  uint32_t categories;
  uint64_t type, track_uuid, name_iid;
  bool has_track, has_flows, has_terminating, has_legacy, is_thread_track;
  /* The legacy fields. */
  uint64_t phase, scope, bind_id, direction, legacy_name_iid;
  int64_t duration_us;
  uint64_t id;
  bool has_id, binds_enclosing;
  /* Where the event belongs. */
  uint32_t row, utid, passthrough; /* ST_NO_ROW if none. */
  struct st_thread_counts counts;
};

static void add_category(struct st_importer* m, struct parsed* p,
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

static void read_category_iids(struct st_importer* m, struct parsed* p,
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

static void read_legacy(struct parsed* p, struct st_field legacy) {
  struct st_decoder d;
  struct st_field f;
  p->has_legacy = true;
  st_decoder_init(&d, legacy.data, legacy.size);
  while (st_decoder_next(&d, &f)) {
    switch (f.number) {
      case LEGACY(NAME_IID):
        p->legacy_name_iid = f.value;
        break;
      case LEGACY(PHASE):
        p->phase = f.value;
        break;
      case LEGACY(DURATION_US):
        p->duration_us = (int64_t)f.value;
        break;
      case LEGACY(UNSCOPED_ID):
      case LEGACY(LOCAL_ID):
      case LEGACY(GLOBAL_ID):
        p->id = f.value;
        p->has_id = true;
        break;
      case LEGACY(BIND_TO_ENCLOSING):
        p->binds_enclosing = f.value != 0;
        break;
      case LEGACY(BIND_ID):
        p->bind_id = f.value;
        break;
      case LEGACY(FLOW_DIRECTION):
        p->direction = f.value;
        break;
      case LEGACY(INSTANT_EVENT_SCOPE):
        p->scope = f.value;
        break;
      default:
        break;
    }
  }
}

static void read_field(struct st_importer* m, struct parsed* p,
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
        read_legacy(p, f);
      break;
    default:
      break;
  }
}

/* Names the event's only category by its iid, which is unknown. */
static void name_unknown_category(struct st_importer* m, struct parsed* p,
                                  uint64_t iid) {
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

static void read_event(struct st_importer* m, struct parsed* p) {
  struct st_decoder d;
  struct st_field f;
  uint64_t iids = 0, strings = 0, iid = 0;
  st_decoder_init(&d, p->event->data, p->event->size);
  while (st_decoder_next(&d, &f)) {
    read_field(m, p, f);
    if (f.number == FIELD(CATEGORY_IIDS) && !f.data) {
      iids++;
      iid = f.value;
    }
    strings += f.number == FIELD(CATEGORIES);
  }
  if (iids == 1 && !strings && !p->category)
    name_unknown_category(m, p, iid);
  uint64_t name = p->name_iid ? p->name_iid : p->legacy_name_iid;
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

static enum st_use use_of(const struct parsed* p) {
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

/* Finds the thread or process of the event.  Returns false if the track has
 * invalid ancestors. */
static bool find_owner(struct st_importer* m, struct parsed* p) {
  const struct st_generation* g =
      &m->sequences.generations.data[p->event->generation];
  const struct st_sequence* sequence =
      &m->sequences.sequences.data[g->sequence];
  uint64_t uuid = p->has_track ? p->track_uuid : g->defaults.track_uuid;
  if (!uuid && sequence->has_thread && (!p->has_track || !p->type)) {
    p->utid = sequence_thread(m, sequence);
    p->is_thread_track = true;
    return true;
  }
  struct st_track* track = st_tracks_resolve(&m->tracks, uuid);
  if (!track)
    return false;
  if (track->scope == ST_SCOPE_THREAD) {
    p->utid = track->owner;
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

/* Finds or adds the row of the event's track.  The rows of the event's counters
 * come first. */
static void find_row(struct st_importer* m, struct parsed* p) {
  p->row = p->is_thread_track
               ? st_tracks_thread_row(&m->tracks, p->utid)
               : st_tracks_row(&m->tracks, p->track_uuid, use_of(p), p->name);
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

static void add_thread_counter(struct st_importer* m, const struct parsed* p,
                               const char* type, const char* name,
                               double value) {
  struct st_fixed_track f = {.type = type,
                             .name = st_intern(&m->storage, name),
                             .is_counter = true,
                             .dimensions = {{"utid", .number = p->utid}}};
  st_add_counter(m, p->event->ts, st_tracks_fixed_row(&m->tracks, &f), value);
}

/* Adds the event's thread time and instruction count as counter values. */
static void add_legacy_counters(struct st_importer* m, const struct parsed* p) {
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
static void add_extra_counters(struct st_importer* m, struct parsed* p) {
  const double* values = st_event_tail(p->event);
  uint32_t count = values ? (uint32_t)values[1] : 0;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t uuid;
    memcpy(&uuid, &values[2 + 2 * i], sizeof uuid);
    double value = values[3 + 2 * i];
    struct st_track* track = st_tracks_resolve(&m->tracks, uuid);
    if (!track)
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
static void add_flows(struct st_importer* m, const struct parsed* p,
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

static void add_legacy_flow(struct st_importer* m, const struct parsed* p,
                            uint32_t slice) {
  if (!p->bind_id)
    return;
  if (p->direction == ST_ENUM_TRACK_EVENT_LEGACY_EVENT_FLOW_IN)
    st_flow_end(&m->flows, p->bind_id, slice);
  else if (p->direction)
    st_flow_continue(&m->flows, p->bind_id, slice);
}

static void add_all_flows(struct st_importer* m, const struct parsed* p,
                          uint32_t slice) {
  add_flows(m, p, slice, false);
  add_flows(m, p, slice, true);
  add_legacy_flow(m, p, slice);
}

static void add_args(struct st_importer* m, const struct parsed* p,
                     struct st_arg_list* args) {
  st_parse_event_args(m, p->event, p->utid, args);
  if (!p->type && p->phase == 'R')
    st_arg_add_text(args, st_intern(&m->storage, "legacy_event.phase"),
                    st_intern(&m->storage, "R"));
  if (p->passthrough == ST_NO_ROW)
    return;
  st_string key = st_intern(&m->storage, "legacy_event.passthrough_utid");
  for (uint32_t i = 0; i < args->args.size; i++) {
    if (args->args.data[i].key == key)
      return;
  }
  st_arg_add_int(args, key, ST_ARG_UINT, p->passthrough);
}

static void begin_slice(struct st_importer* m, struct parsed* p, int64_t dur) {
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

static void end_slice(struct st_importer* m, struct parsed* p) {
  struct st_arg_list* args;
  uint32_t row = st_slice_end(&m->slices, p->row, p->event->ts, p->category,
                              p->name, &args, p->counts);
  if (row == ST_NO_ROW)
    return;
  add_args(m, p, args);
  add_all_flows(m, p, row);
  st_slice_closed(&m->slices, p->row, row);
}

static void add_counter_event(struct st_importer* m, struct parsed* p) {
  const double* values = st_event_tail(p->event);
  uint32_t row = st_add_counter(m, p->event->ts, p->row, values[0]);
  struct st_arg_list args = {0};
  add_args(m, p, &args);
  uint32_t set = st_arg_sets_add(&m->arg_sets, &m->storage, &args);
  if (set != ST_NO_ROW)
    st_table_set(&m->storage.tables[ST_COUNTER_TABLE], row,
                 ST_COUNTER_arg_set_id, st_int(set));
  st_arg_list_free(&args);
}

/* Converts a duration to ns, cut so that the slice ends at a valid time. */
static int64_t duration_ns(int64_t ts, int64_t us) {
  int64_t limit = INT64_MAX - ts;
  if (us < 0)
    return 0;
  return us > limit / 1000 ? limit : us * 1000;
}

/* Parses a flow that consists of events of its own. */
static void parse_flow(struct st_importer* m, const struct parsed* p) {
  if (!p->has_id) {
    m->flows.invalid_ids++;
    return;
  }
  uint64_t id = st_flow_of_event(&m->flows, p->id, p->category, p->name);
  uint32_t slice = st_slice_top(&m->slices, p->row);
  if (p->phase == 's')
    st_flow_begin_on_track(&m->flows, id, slice);
  else if (p->phase == 't')
    st_flow_step_on_track(&m->flows, id, slice);
  else if (p->binds_enclosing)
    st_flow_end_on_track(&m->flows, id, slice);
  else
    st_flow_end_at_next(&m->flows, id, p->row);
}

/* Parses an event that has a phase instead of a type. */
static void parse_legacy(struct st_importer* m, struct parsed* p) {
  bool is_thread =
      p->scope == ST_ENUM_TRACK_EVENT_LEGACY_EVENT_SCOPE_UNSPECIFIED ||
      p->scope == ST_ENUM_TRACK_EVENT_LEGACY_EVENT_SCOPE_THREAD;
  if (!p->phase) {
    m->counts.parser_errors++;
    return;
  }
  if (p->phase == 's' || p->phase == 't' || p->phase == 'f') {
    find_row(m, p);
    parse_flow(m, p);
    return;
  }
  if (p->phase > 127 || !strchr("BEXiIR", (int)p->phase) ||
      (strchr("iI", (int)p->phase) && !is_thread)) {
    m->counts.unread_events++;
    return;
  }
  find_row(m, p);
  if (p->phase == 'E')
    end_slice(m, p);
  else if (p->phase == 'B')
    begin_slice(m, p, -1);
  else
    begin_slice(
        m, p, p->phase == 'X' ? duration_ns(p->event->ts, p->duration_us) : 0);
}

void st_parse_event(struct st_importer* m, const struct st_event* e) {
  struct parsed p = {.event = e, .utid = ST_NO_ROW, .passthrough = ST_NO_ROW};
  m->tracks.file = st_sequences_file(&m->sequences, e->generation);
  read_event(m, &p);
  if (p.type > TYPE(COUNTER)) {
    m->counts.unread_events++;
    return;
  }
  if (!find_owner(m, &p)) {
    m->counts.parser_errors++;
    return;
  }
  add_legacy_counters(m, &p);
  add_extra_counters(m, &p);
  if (p.type)
    find_row(m, &p);
  switch (p.type) {
    case TYPE(SLICE_BEGIN):
      begin_slice(m, &p, -1);
      break;
    case TYPE(SLICE_END):
      end_slice(m, &p);
      break;
    case TYPE(INSTANT):
      begin_slice(m, &p, 0);
      break;
    case TYPE(COUNTER):
      add_counter_event(m, &p);
      break;
    default:
      parse_legacy(m, &p);
  }
}
