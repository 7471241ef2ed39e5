/* Track events with a phase instead of a type, as older versions of Chromium
 * write them.
 *
 *   B E X i I R         slices and instants
 *   b e n  S T p F      slices that are known by an id, and instants in them
 *   s t f               flows
 *   M                   names of threads and processes
 *
 * Events of other phases are raw events (raw_events.h).
 *
 * Source: Perfetto's message TrackEvent.LegacyEvent.
 */
#include <string.h>

#include "core/fields.h"
#include "messages.h"
#include "parsed_event.h"

#define LEGACY(name) ST_FIELD_TRACK_EVENT_LEGACY_EVENT_##name
#define SCOPE(name) ST_ENUM_TRACK_EVENT_LEGACY_EVENT_SCOPE_##name
#define FLOW(name) ST_ENUM_TRACK_EVENT_LEGACY_EVENT_FLOW_##name

void st_legacy_read(struct st_legacy_event* l, struct st_field field) {
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, field.data, field.size);
  while (st_decoder_next(&d, &f)) {
    switch (f.number) {
      case LEGACY(NAME_IID):
        l->name_iid = f.value;
        break;
      case LEGACY(PHASE):
        l->phase = f.value;
        break;
      case LEGACY(DURATION_US):
        l->duration_us = (int64_t)f.value;
        break;
      case LEGACY(UNSCOPED_ID):
        l->unscoped_id = f.value;
        l->has_unscoped_id = true;
        break;
      case LEGACY(LOCAL_ID):
        l->local_id = f.value;
        l->has_local_id = true;
        break;
      case LEGACY(GLOBAL_ID):
        l->global_id = f.value;
        l->has_global_id = true;
        break;
      case LEGACY(ID_SCOPE):
        l->id_scope = f;
        break;
      case LEGACY(BIND_TO_ENCLOSING):
        l->binds_enclosing = f.value != 0;
        break;
      case LEGACY(BIND_ID):
        l->bind_id = f.value;
        l->has_bind_id = true;
        break;
      case LEGACY(FLOW_DIRECTION):
        l->direction = f.value;
        l->has_direction = true;
        break;
      case LEGACY(PID_OVERRIDE):
        l->pid = (uint32_t)f.value;
        l->has_pid = true;
        break;
      case LEGACY(TID_OVERRIDE):
        l->tid = (uint32_t)f.value;
        l->has_tid = true;
        break;
      case LEGACY(INSTANT_EVENT_SCOPE):
        l->scope = f.value;
        break;
      default:
        break;
    }
  }
}

static bool has_phase(const struct st_parsed_event* p, const char* phases) {
  uint64_t phase = p->legacy.phase;
  return !p->type && phase && phase <= 127 && strchr(phases, (int)phase);
}

static bool is_thread_scoped(const struct st_parsed_event* p) {
  return p->legacy.scope == SCOPE(UNSPECIFIED) ||
         p->legacy.scope == SCOPE(THREAD);
}

bool st_legacy_find_owner(struct st_parsed_event* p) {
  if (has_phase(p, "benSTpF")) {
    p->passthrough = p->utid;
  } else if (has_phase(p, "iI") && !is_thread_scoped(p)) {
    if (p->legacy.scope == SCOPE(PROCESS) && p->upid == ST_NO_ROW)
      return false;
    p->passthrough = p->utid;
    p->utid = ST_NO_ROW;
  } else if (has_phase(p, "BEXiI")) {
    return p->utid != ST_NO_ROW;
  }
  return true;
}

void st_legacy_add_flow(struct st_importer* m, const struct st_parsed_event* p,
                        uint32_t slice) {
  const struct st_legacy_event* l = &p->legacy;
  if (!l->has_bind_id)
    return;
  if (l->direction == FLOW(OUT))
    st_flow_begin_on_track(&m->flows, l->bind_id, slice);
  else if (l->direction == FLOW(INOUT))
    st_flow_step_on_track(&m->flows, l->bind_id, slice);
  else if (l->direction == FLOW(IN))
    st_flow_end_on_track(&m->flows, l->bind_id, slice);
  else
    m->flows.without_direction++;
}

/* Parses a flow that consists of events of its own. */
static void parse_flow(struct st_importer* m, struct st_parsed_event* p) {
  if (!p->legacy.has_unscoped_id) {
    m->flows.invalid_ids++;
    m->counts.parser_errors++;
    return;
  }
  st_event_find_row(m, p, ST_USE_INSTANT);
  uint64_t id =
      st_flow_of_event(&m->flows, p->legacy.unscoped_id, p->category, p->name);
  uint32_t slice = st_slice_top(&m->slices, p->row);
  if (p->legacy.phase == 's')
    st_flow_begin_on_track(&m->flows, id, slice);
  else if (p->legacy.phase == 't')
    st_flow_step_on_track(&m->flows, id, slice);
  else if (p->legacy.binds_enclosing)
    st_flow_end_on_track(&m->flows, id, slice);
  else
    st_flow_end_at_next(&m->flows, id, p->row);
}

/* Returns the scope of an id: "category:scope" if the event has a scope of its
 * own, else the category, or the name in the older phases. */
static st_string id_scope(struct st_importer* m,
                          const struct st_parsed_event* p) {
  struct st_field scope = p->legacy.id_scope;
  size_t size;
  if (!scope.data)
    return has_phase(p, "STpF") ? p->name : p->category;
  st_string_text(&m->storage.strings, p->category, &size);
  char* joined = st_bytes_take(&m->arena, size + 1 + scope.size);
  memcpy(joined, st_string_text(&m->storage.strings, p->category, &size), size);
  joined[size] = ':';
  memcpy(joined + size + 1, scope.data, scope.size);
  return st_string_add(&m->storage.strings, joined, size + 1 + scope.size);
}

/* Returns false if the event has no valid id. */
static bool read_id(struct st_importer* m, const struct st_parsed_event* p,
                    struct st_async_slice* slice) {
  const struct st_legacy_event* l = &p->legacy;
  bool is_known = l->has_unscoped_id || l->has_global_id;
  if (!is_known && (!l->has_local_id || p->upid == ST_NO_ROW))
    return false;
  *slice = (struct st_async_slice){
      .id = l->has_unscoped_id ? l->unscoped_id
            : l->has_global_id ? l->global_id
                               : l->local_id,
      .is_local = !is_known,
      .upid = p->upid == ST_NO_ROW ? 0 : p->upid,
      .name = p->name,
      .scope = id_scope(m, p),
  };
  return true;
}

/* Perfetto looks up the row of a step T as that of an end, and the row of an
 * end F as that of an instant. */
static enum st_use use_of_row(const struct st_parsed_event* p) {
  return has_phase(p, "bS")   ? ST_USE_BEGIN
         : has_phase(p, "eT") ? ST_USE_END
                              : ST_USE_INSTANT;
}

/* Parses an event of a slice that is known by an id. */
static void parse_async(struct st_importer* m, struct st_parsed_event* p) {
  bool begins = has_phase(p, "bS"), ends = has_phase(p, "eF");
  struct st_async_slice slice;
  if (!p->is_thread_track)
    st_event_find_row(m, p,
                      begins ? ST_USE_BEGIN
                      : ends ? ST_USE_END
                             : ST_USE_INSTANT);
  if (!read_id(m, p, &slice)) {
    m->counts.parser_errors++;
    return;
  }
  int64_t id = (int64_t)slice.id;
  p->source_id = &id;
  p->counts = (struct st_thread_counts){0};
  p->row =
      st_async_track_row(&m->async_tracks, &m->tracks, &slice, use_of_row(p));
  if (ends)
    st_event_end_slice(m, p);
  else
    st_event_begin_slice(m, p, begins ? -1 : 0);
  p->source_id = NULL;
}

/* Parses an instant of a process, or of the whole trace. */
static void parse_wide_instant(struct st_importer* m,
                               struct st_parsed_event* p) {
  struct st_arg_list source = {0};
  struct st_fixed_track f = {.type = "legacy_chrome_global_instants",
                             .source = &source};
  if (!p->is_thread_track)
    st_event_find_row(m, p, ST_USE_INSTANT);
  if (p->legacy.scope == SCOPE(PROCESS)) {
    f.type = "chrome_process_instant";
    f.dimensions[0] = (struct st_dimension){"upid", .number = p->upid};
  }
  st_arg_add_text(&source, st_intern(&m->storage, "source"),
                  st_intern(&m->storage, "chrome"));
  p->row = st_tracks_fixed_row(&m->tracks, &f);
  st_arg_list_free(&source);
  p->counts = (struct st_thread_counts){0};
  st_event_begin_slice(m, p, 0);
}

/* Converts a duration to ns, cut so that the slice ends at a valid time. */
static int64_t duration_ns(int64_t ts, int64_t us) {
  int64_t limit = INT64_MAX - ts;
  if (us < 0)
    return 0;
  return us > limit / 1000 ? limit : us * 1000;
}

static void parse_thread_event(struct st_importer* m,
                               struct st_parsed_event* p) {
  st_event_find_row(m, p, ST_USE_INSTANT);
  if (p->legacy.phase == 'E')
    st_event_end_slice(m, p);
  else if (p->legacy.phase == 'B')
    st_event_begin_slice(m, p, -1);
  else
    st_event_begin_slice(m, p,
                         p->legacy.phase == 'X'
                             ? duration_ns(p->event->ts, p->legacy.duration_us)
                             : 0);
}

/* Returns the event's first annotation; its `data` is NULL if there is none. */
static struct st_field first_annotation(const struct st_event* e) {
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, e->data, e->size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == ST_FIELD_TRACK_EVENT_DEBUG_ANNOTATIONS && f.data)
      return f;
  }
  return (struct st_field){0};
}

static void add_raw_text(struct st_importer* m, const char* key,
                         st_string text) {
  st_arg_add_text(&m->raw.args, st_intern(&m->storage, key), text);
}

static void add_raw_number(struct st_importer* m, const char* key,
                           enum st_arg_type type, uint64_t value) {
  st_arg_add_int(&m->raw.args, st_intern(&m->storage, key), type,
                 (int64_t)value);
}

/* Adds the times and instruction counts of a raw event. */
static void add_raw_counts(struct st_importer* m,
                           const struct st_parsed_event* p,
                           const struct st_field* f) {
  const struct st_thread_counts* c = &p->counts;
  if (f[LEGACY(DURATION_US)].number)
    add_raw_number(m, "legacy_event.duration_ns", ST_ARG_INT,
                   f[LEGACY(DURATION_US)].value * 1000);
  if (c->has_time)
    add_raw_number(m, "legacy_event.thread_timestamp_ns", ST_ARG_INT,
                   (uint64_t)c->time);
  if (c->has_time && f[LEGACY(THREAD_DURATION_US)].number)
    add_raw_number(m, "legacy_event.thread_duration_ns", ST_ARG_INT,
                   f[LEGACY(THREAD_DURATION_US)].value * 1000);
  if (c->has_instructions)
    add_raw_number(m, "legacy_event.thread_instruction_count", ST_ARG_INT,
                   (uint64_t)c->instructions);
  if (c->has_instructions && f[LEGACY(THREAD_INSTRUCTION_DELTA)].number)
    add_raw_number(m, "legacy_event.thread_instruction_delta", ST_ARG_INT,
                   f[LEGACY(THREAD_INSTRUCTION_DELTA)].value);
  if (f[LEGACY(USE_ASYNC_TTS)].value)
    add_raw_number(m, "legacy_event.use_async_tts", ST_ARG_BOOL, 1);
}

static void add_raw_ids(struct st_importer* m,
                        const struct st_parsed_event* p) {
  const struct st_legacy_event* l = &p->legacy;
  if (l->has_unscoped_id)
    add_raw_number(m, "legacy_event.unscoped_id", ST_ARG_UINT, l->unscoped_id);
  else if (l->has_global_id)
    add_raw_number(m, "legacy_event.global_id", ST_ARG_UINT, l->global_id);
  else if (l->has_local_id)
    add_raw_number(m, "legacy_event.local_id", ST_ARG_UINT, l->local_id);
  else
    return;
  if (l->id_scope.size)
    add_raw_text(m, "legacy_event.id_scope",
                 st_field_text(&m->storage, l->id_scope));
}

void st_event_add_raw(struct st_importer* m, const struct st_parsed_event* p) {
  struct st_field event = {.data = p->event->data, .size = p->event->size};
  struct st_field f[LEGACY(THREAD_INSTRUCTION_DELTA) + 1];
  char phase = (char)p->legacy.phase;
  if (p->utid == ST_NO_ROW) {
    m->counts.parser_errors++;
    return;
  }
  if (m->raw.is_kept) {
    st_message_read(st_message_find(event, ST_FIELD_TRACK_EVENT_LEGACY_EVENT),
                    f, LEGACY(THREAD_INSTRUCTION_DELTA) + 1);
    add_raw_text(m, "legacy_event.category", p->category);
    add_raw_text(m, "legacy_event.name", p->name);
    add_raw_text(m, "legacy_event.phase",
                 st_string_add(&m->storage.strings, &phase, phase != 0));
    add_raw_counts(m, p, f);
    add_raw_ids(m, p);
    st_parse_event_args(m, p->event, p->parts, p->utid, NULL, &m->raw.args);
  }
  st_raw_chrome_event(m, p->event->ts, "track_event.legacy_event", p->utid);
}

/* Sets the name of the thread or process to the text of the event's first
 * annotation. */
static void parse_name(struct st_importer* m, struct st_parsed_event* p) {
  bool is_thread = p->name == st_intern(&m->storage, "thread_name");
  if (!is_thread && p->name != st_intern(&m->storage, "process_name")) {
    st_event_add_raw(m, p);
    return;
  }
  struct st_field annotation = first_annotation(p->event);
  struct st_field text =
      st_message_find(annotation, ST_FIELD_DEBUG_ANNOTATION_STRING_VALUE);
  if (!annotation.data || (is_thread ? p->utid : p->upid) == ST_NO_ROW) {
    m->counts.parser_errors++;
    return;
  }
  if (!text.size)
    return;
  st_string name = st_string_add(&m->storage.strings, text.data, text.size);
  if (is_thread)
    st_thread_set_name(&m->processes, p->utid, name, ST_NAME_CHROME_TYPE);
  else
    st_process_set_name(&m->processes, p->upid, name, false);
}

void st_legacy_parse(struct st_importer* m, struct st_parsed_event* p) {
  if (!p->legacy.phase)
    m->counts.parser_errors++;
  else if (has_phase(p, "stf"))
    parse_flow(m, p);
  else if (has_phase(p, "benSTpF"))
    parse_async(m, p);
  else if (has_phase(p, "iI") && !is_thread_scoped(p))
    parse_wide_instant(m, p);
  else if (has_phase(p, "BEXiIR"))
    parse_thread_event(m, p);
  else if (has_phase(p, "M"))
    parse_name(m, p);
  else
    st_event_add_raw(m, p);
}
