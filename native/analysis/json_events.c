/* Queues the events of a JSON trace, and parses them in the order of time. */
#include <string.h>

#include "importer.h"
#include "json_fields.h"

/* An event while it is parsed. */
struct parsed {
  struct st_json_fields e;
  int64_t ts;
  uint32_t utid, pid, tid;
  st_string name, category;
};

/* Queues an event.  Of the events with the same timestamp, ends are parsed
 * first, then complete slices, longer ones before shorter ones, then the
 * others. */
static void queue_event(void* context, const char* text, size_t size) {
  struct st_importer* m = context;
  struct st_json_fields e;
  if (size > INT32_MAX || !st_json_fields_read(&e, text, size)) {
    m->json.invalid++;
    return;
  }
  if (e.ts < 0) {
    m->counts.negative_timestamps++;
    return;
  }
  m->sorter.has_ranks |= e.phase == 'X';
  int64_t rank = e.phase == 'E'   ? INT64_MIN
                 : e.phase == 'X' ? -(e.dur > 0 ? e.dur : 0)
                                  : INT64_MAX;
  st_sorter_push_with(&m->sorter, ST_QUEUE_JSON, 0,
                      (struct st_event){.ts = e.ts,
                                        .data = (const uint8_t*)text,
                                        .tail = (const uint8_t*)&rank,
                                        .size = (uint32_t)size},
                      sizeof rank);
}

void st_read_json(struct st_importer* m, const char* data, size_t size) {
  st_json_feed(&m->json.reader, data, size, queue_event, m);
}

static st_string string_of(struct st_importer* m, struct st_json text) {
  return text.kind == ST_JSON_TEXT && text.size
             ? st_json_string(&m->storage.strings, text)
             : 0;
}

/* Returns a pid or tid; 0 if the value is invalid.  A text is replaced by its
 * number in the string pool. */
static uint32_t number_of(struct st_importer* m, struct st_json value) {
  if (value.kind == ST_JSON_TEXT)
    return st_json_string(&m->storage.strings, value);
  if (value.kind == ST_JSON_REAL && value.f > 0 && value.f < 4294967296.0)
    return (uint32_t)value.f;
  return value.kind == ST_JSON_INT && value.i > 0 && value.i <= UINT32_MAX
             ? (uint32_t)value.i
             : 0;
}

static bool is_id(struct st_json value) {
  return value.kind == ST_JSON_TEXT || value.kind == ST_JSON_INT ||
         value.kind == ST_JSON_REAL;
}

static void find_thread(struct st_importer* m, struct parsed* p) {
  struct st_json_fields* e = &p->e;
  p->pid = number_of(m, e->pid);
  p->tid = number_of(m, e->tid);
  if (!p->tid && p->pid && e->tid.kind != ST_JSON_TEXT)
    p->tid = p->pid;
  if (e->pid.kind == ST_JSON_TEXT) {
    uint32_t upid = st_process_get(&m->processes, p->pid);
    st_process_set_name(&m->processes, upid, p->pid, true);
  }
  if (e->tid.kind == ST_JSON_TEXT)
    st_thread_set_name(&m->processes, st_thread_seen(&m->processes, p->tid),
                       p->tid, ST_NAME_OTHER);
  p->utid = st_thread_get(&m->processes, p->tid, p->pid);
}

static void add_args(struct st_importer* m, const struct parsed* p,
                     struct st_arg_list* args) {
  if (!args || p->e.args.kind != ST_JSON_OBJECT)
    return;
  struct st_arg_path* path = st_path_begin(m, 0, args);
  st_path_append(path, "args", 4);
  st_add_json(path, p->e.args);
}

static void set_time(struct st_importer* m, uint32_t row, uint32_t column,
                     bool is_known, int64_t value) {
  if (is_known && row != ST_NO_ROW)
    st_table_set(&m->storage.tables[ST_SLICE_TABLE], row, column,
                 st_int(value));
}

/* Adds the flow that is given by bind_id, flow_in and flow_out of an event. */
static void add_own_flow(struct st_importer* m, const struct parsed* p,
                         uint32_t track) {
  uint64_t id;
  const struct st_json_fields* e = &p->e;
  if (!st_json_flow_id(e->bind_id, &id))
    return;
  if (e->flows_in && e->flows_out)
    st_flow_step_on_track(&m->flows, id, st_slice_top(&m->slices, track));
  else if (e->flows_out)
    st_flow_begin_on_track(&m->flows, id, st_slice_top(&m->slices, track));
  else if (e->flows_in)
    st_flow_end_on_track(&m->flows, id, st_slice_top(&m->slices, track));
  else
    m->flows.without_direction++;
}

/* Begins a slice, which ends the flows that wait for a slice on its track.
 * Returns its row. */
static uint32_t begin(struct st_importer* m, const struct parsed* p,
                      uint32_t track, int64_t dur, st_string name) {
  struct st_arg_list* args;
  uint32_t row =
      st_slice_begin(&m->slices, track, p->ts, dur, p->category, name, &args);
  if (args) /* The slice is on the stack. */
    st_flows_slice_begins(&m->flows, track, row);
  add_args(m, p, args);
  return row;
}

static uint32_t end(struct st_importer* m, const struct parsed* p,
                    uint32_t track) {
  struct st_arg_list* args;
  uint32_t row = st_slice_end(&m->slices, track, p->ts, p->category, p->name,
                              &args, (struct st_thread_counts){0});
  if (row == ST_NO_ROW)
    return row;
  add_args(m, p, args);
  st_slice_closed(&m->slices, track, row);
  return row;
}

static uint32_t thread_track(struct st_importer* m, const struct parsed* p) {
  return st_tracks_thread_row(&m->tracks, p->utid);
}

static st_string shown_name(struct st_importer* m, const struct parsed* p) {
  return p->name ? p->name : st_intern(&m->storage, "[No name]");
}

static void parse_slice(struct st_importer* m, const struct parsed* p) {
  const struct st_json_fields* e = &p->e;
  uint32_t track = thread_track(m, p);
  const struct st_table* slices = &m->storage.tables[ST_SLICE_TABLE];
  if (e->phase == 'E') {
    uint32_t row = end(m, p, track);
    if (row == ST_NO_ROW)
      return;
    struct st_cell tts = st_table_get(slices, row, ST_SLICE_thread_ts);
    set_time(m, row, ST_SLICE_thread_dur, e->has_tts && tts.valid,
             (int64_t)((uint64_t)e->tts - (uint64_t)tts.i));
    return;
  }
  if (e->phase == 'X' && !e->has_dur) {
    m->json.unusable++;
    return;
  }
  uint32_t row =
      begin(m, p, track, e->phase == 'B' ? -1 : e->dur, shown_name(m, p));
  set_time(m, row, ST_SLICE_thread_ts, e->has_tts, e->tts);
  set_time(m, row, ST_SLICE_thread_dur, e->phase == 'X' && e->has_tdur,
           e->tdur);
  add_own_flow(m, p, track);
}

static uint64_t hash_id(struct st_importer* m, const struct parsed* p,
                        struct st_json_id id) {
  uint64_t number = id.is_text ? string_of(m, id.text) : id.number;
  return st_mix(st_mix(p->category ^ (uint64_t)id.is_text << 40) ^ number);
}

/* Returns the row of an asynchronous slice's track. */
static uint32_t async_track(struct st_importer* m, const struct parsed* p,
                            uint64_t id, bool is_local) {
  struct st_async_slice slice = {.id = id,
                                 .is_local = is_local,
                                 .upid = st_process_get(&m->processes, p->pid),
                                 .name = p->name};
  return st_async_track_row(&m->async_tracks, &m->tracks, &slice,
                            p->e.phase == 'b'   ? ST_USE_BEGIN
                            : p->e.phase == 'e' ? ST_USE_END
                                                : ST_USE_INSTANT);
}

static void parse_async(struct st_importer* m, const struct parsed* p) {
  const struct st_json_fields* e = &p->e;
  struct st_json_id id = e->id.is_known          ? e->id
                         : e->global_id.is_known ? e->global_id
                                                 : e->local_id;
  if (!is_id(e->pid) || !id.is_known) {
    m->json.unusable++;
    return;
  }
  bool is_local = !e->id.is_known && !e->global_id.is_known;
  uint32_t track = async_track(m, p, hash_id(m, p, id), is_local);
  if (e->phase == 'e') {
    end(m, p, track);
    return;
  }
  begin(m, p, track, e->phase == 'b' ? -1 : 0,
        e->phase == 'b' ? shown_name(m, p) : p->name);
  add_own_flow(m, p, track);
}

static void parse_instant(struct st_importer* m, const struct parsed* p) {
  const struct st_json_fields* e = &p->e;
  bool is_on_process = e->scope == 'p';
  if ((e->scope == 't' && !is_id(e->tid)) ||
      (is_on_process && !is_id(e->pid))) {
    m->json.unusable++;
    return;
  }
  if (e->scope == 't') {
    uint32_t row = begin(m, p, thread_track(m, p), 0, shown_name(m, p));
    set_time(m, row, ST_SLICE_thread_ts, e->has_tts, e->tts);
    return;
  }
  struct st_arg_list source = {0};
  st_arg_add_text(&source, st_intern(&m->storage, "source"),
                  st_intern(&m->storage, "chrome"));
  struct st_fixed_track f = {.type = "legacy_chrome_global_instants",
                             .source = &source};
  if (is_on_process) {
    f.type = "chrome_process_instant";
    f.dimensions[0] = (struct st_dimension){
        "upid", .number = st_process_get(&m->processes, p->pid)};
  }
  uint32_t track = st_tracks_fixed_row(&m->tracks, &f);
  st_arg_list_free(&source);
  begin(m, p, track, 0, p->name);
}

/* The name of a counter.  A longer name is cut off. */
struct counter_name {
  char text[4096];
  size_t size;
};

static void append(struct counter_name* n, const char* more, size_t count) {
  size_t room = sizeof n->text - n->size;
  count = count < room ? count : room;
  memcpy(n->text + n->size, more, count);
  n->size += count;
}

/* Returns the name of a counter: the names of the event and of the member, with
 * the event's id between them if it is a text. */
static st_string counter_name(struct st_importer* m, const struct parsed* p,
                              struct st_json member) {
  struct counter_name n = {.size = 0};
  size_t size;
  const char* name = st_string_text(&m->storage.strings, p->name, &size);
  append(&n, name, size);
  if (p->e.id.is_text && p->e.id.text.size) {
    append(&n, " id: ", 5);
    append(&n, p->e.id.text.data, p->e.id.text.size);
  }
  append(&n, " ", 1);
  append(&n, member.data, member.size);
  return st_string_add(&m->storage.strings, n.text, n.size);
}

/* Adds a row for each member of the event's args.  The tracks of the rows are
 * set after the last event, when the threads' processes are known. */
static void parse_counters(struct st_importer* m, const struct parsed* p) {
  struct st_json_members in = st_json_members(p->e.args);
  struct st_json name, value;
  if (p->e.args.kind != ST_JSON_OBJECT) {
    m->json.unusable++;
    return;
  }
  while (st_json_next(&in, &name, &value)) {
    if (value.kind == ST_JSON_TEXT)
      value = st_json_number(value);
    if (value.kind != ST_JSON_INT && value.kind != ST_JSON_REAL) {
      m->json.unusable++;
      continue;
    }
    double number = value.kind == ST_JSON_INT ? (double)value.i : value.f;
    uint32_t row = st_add_counter(m, p->ts, 0, number);
    *ST_PUSH(&m->json.counters) =
        (struct st_json_counter){row, p->utid, counter_name(m, p, name)};
  }
}

static void set_counter_tracks(struct st_importer* m) {
  for (uint32_t i = 0; i < m->json.counters.size; i++) {
    const struct st_json_counter* c = &m->json.counters.data[i];
    uint32_t upid = m->processes.threads.data[c->utid].upid;
    struct st_fixed_track f = {
        .type = "json_counter",
        .name = c->name,
        .is_counter = true,
        .dimensions = {{"upid", .number = upid}, {"name", .text = c->name}}};
    st_table_set(&m->storage.tables[ST_COUNTER_TABLE], c->row,
                 ST_COUNTER_track_id,
                 st_int(st_tracks_fixed_row(&m->tracks, &f)));
  }
}

static void parse_flow(struct st_importer* m, const struct parsed* p) {
  uint64_t id;
  uint32_t track = thread_track(m, p);
  if (!st_json_flow_id(p->e.id, &id)) {
    m->flows.invalid_ids++;
    return;
  }
  id = st_flow_of_event(&m->flows, id, p->category, p->name);
  uint32_t slice = st_slice_top(&m->slices, track);
  if (p->e.phase == 's')
    st_flow_begin_on_track(&m->flows, id, slice);
  else if (p->e.phase == 't')
    st_flow_step_on_track(&m->flows, id, slice);
  else if (p->e.binds_enclosing)
    st_flow_end_on_track(&m->flows, id, slice);
  else
    st_flow_end_at_next(&m->flows, id, track);
}

static void parse_name(struct st_importer* m, const struct parsed* p) {
  bool is_thread = st_json_is(p->e.name, "thread_name");
  struct st_json_members in = st_json_members(p->e.args);
  struct st_json key, value;
  if (!is_thread && !st_json_is(p->e.name, "process_name"))
    return;
  while (st_json_next(&in, &key, &value)) {
    if (!st_json_is(key, "name"))
      continue;
    st_string name = string_of(m, value);
    m->json.unusable += !name;
    if (is_thread)
      st_thread_set_name(&m->processes, p->utid, name, ST_NAME_OTHER);
    else
      st_process_set_name(&m->processes, st_process_get(&m->processes, p->pid),
                          name, true);
  }
}

/* Returns whether a phase is one that is not imported, and has no slices:
 * samples, objects, memory dumps, clocks, contexts, linked ids. */
static bool is_known_kind(char phase) {
  return phase && strchr("PNODvVc()=", phase);
}

void st_parse_json(struct st_importer* m, const struct st_event* event) {
  struct parsed p = {.ts = event->ts};
  st_json_fields_read(&p.e, (const char*)event->data, event->size);
  find_thread(m, &p);
  p.name = string_of(m, p.e.name);
  p.category = string_of(m, p.e.category);
  m->counts.track_events++;
  switch (p.e.phase) {
    case 'B':
    case 'E':
    case 'X':
      parse_slice(m, &p);
      break;
    case 'b':
    case 'e':
    case 'n':
      parse_async(m, &p);
      break;
    case 'C':
      parse_counters(m, &p);
      break;
    case 'R':
    case 'I':
    case 'i':
      parse_instant(m, &p);
      break;
    case 's':
    case 't':
    case 'f':
      parse_flow(m, &p);
      break;
    case 'M':
      parse_name(m, &p);
      break;
    default:
      if (is_known_kind(p.e.phase))
        m->counts.unread_events++;
      else
        m->json.lost++;
  }
}

void st_end_json(struct st_importer* m) {
  struct st_json_reader* r = &m->json.reader;
  m->is_cut_off |= r->is_object && r->state != ST_JSON_END;
  m->counts.truncated_bytes +=
      r->skipped + (r->state == ST_JSON_EVENT ? r->kept.size : 0);
  st_json_reader_free(r);
  *r = (struct st_json_reader){.has_time_unit = r->has_time_unit};
}

void st_finish_json(struct st_importer* m) {
  set_counter_tracks(m);
}
