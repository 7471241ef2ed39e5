#include "bind/track_event/emit_template.h"

#include "bind/track_event/emit.h"
#include "bind/track_event/emit_plain.h"
#include "bind/track_event/task_track.h"
#include "bind/track_event/template_cache.h"
#include "bind/track_event/thread_state.h"
#include "core/clock.h"
#include "core/fast_clock.h"
#include "core/fields.h"
#include "core/session_slots.h"
#include "core/setters.h"

enum {
  /* The largest size of an event before its values and its block. */
  MAX_HEAD = 48,
  MAX_VALUES = 144, /* The largest size of an event's values and flows. */
  /* The value SEQ_NEEDS_INCREMENTAL_STATE of TracePacket.sequence_flags. */
  NEEDS_STATE = 2,
};

static ALWAYS_INLINE uint8_t* put_time(struct st_sequence* s, uint8_t* p,
                                       uint64_t time, uint64_t now) {
  if (time < s->last_timestamp || time > now) {
    p = st_trace_packet_put_timestamp(p, time);
    return st_trace_packet_put_timestamp_clock_id(p, ST_CLOCK_BOOTTIME);
  }
  p = st_trace_packet_put_timestamp(p, time - s->last_timestamp);
  s->last_timestamp = time;
  return p;
}

static ALWAYS_INLINE uint8_t* put_values(uint8_t* p, const uint8_t* limit,
                                         const struct template_entry* e,
                                         PyObject* const* values,
                                         Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < count; i++) {
    if (values[i] == Py_None)
      continue;
    if (!e->iids[i])
      return NULL;
    p = put_plain_argument(p, limit, e->iids[i], values[i]);
    if (!p)
      return NULL;
  }
  return p;
}

static ALWAYS_INLINE uint8_t* put_block(uint8_t* p,
                                        const struct template_entry* e) {
  return st_put_text(p, (const char*)e->block, e->size);
}

static uint8_t* put_rest(uint8_t* p, const uint8_t* limit,
                         const struct template_entry* e,
                         const struct event_request* r) {
  p = put_values(p, limit, e, r->argument_values,
                 PyTuple_GET_SIZE(r->argument_names));
  if (p && r->flow)
    p = put_plain_flow(p, limit, PART_FLOW, r->flow);
  if (p && r->terminating_flow)
    p = put_plain_flow(p, limit, PART_TERMINATING_FLOW, r->terminating_flow);
  if (!p)
    return NULL;
  return put_block(p, e);
}

/* Writes an event of a template into the chunk.  Returns false, with nothing
 * written, if the caller has to use st_emit. */
static bool write_event(struct st_sequence* s, const struct template_entry* e,
                        const struct event_request* r, uint64_t track_uuid) {
  uint64_t last = s->last_timestamp;
  uint64_t now = r->is_past ? r->timestamp : st_fast_now();
  if (!st_sequence_is_current(s) || (now < last && !r->is_past))
    return false;
  size_t room = MAX_HEAD + e->size + MAX_VALUES;
  uint8_t* start = st_trace_writer_reserve_wide(&s->writer, room);
  if (!start)
    return false;
  uint8_t* p = put_time(s, start, r->has_timestamp ? r->timestamp : now, now);
  p = st_trace_packet_put_sequence_flags(p, NEEDS_STATE);
  *p++ = ST_FIELD_TRACE_PACKET_TRACK_EVENT << 3 | ST_WIRE_DELIMITED;
  uint8_t* size = p;
  p = st_track_event_put_type(p + 2, r->type);
  p = st_put_track(s, p, track_uuid);
  p = put_rest(p, start + room - e->size, e, r);
  if (!p) {
    /* The event was not written, so last_timestamp is restored. */
    s->last_timestamp = last;
    return false;
  }
  st_finish_wide(s, size, p);
  return true;
}

/* Stores the event's track: the given one, that of the calling thread's task,
 * or 0 for the thread's own.  Returns the thread's sequence, or NULL if the
 * event cannot be written at once.  May run Python code to find the task. */
static struct thread_sequence* ready_sequence(const struct event_request* r,
                                              uint32_t mask, uint64_t* track) {
  struct thread_state* t = st_own.state;
  if (UNLIKELY(!t || t->busy || (mask & (mask - 1))))
    return NULL;
  bool in_task = !r->on_thread_track && !r->track;
  if (in_task && context_changed(t))
    thread_state_refresh_task(t);
  int slot = __builtin_ctz(mask);
  struct thread_sequence* s = t->sequences[slot];
  if (UNLIKELY(!s || s->generation != st_slot_running(slot) ||
               s->filter_annotations))
    return NULL;
  if (r->track)
    *track = track_resolve(r->track)->uuid;
  else
    *track = in_task && t->task_track ? t->task_track->core.uuid : 0;
  if (*track == t->track.uuid)
    *track = 0;
  return !*track || st_sequence_has_track(&s->core, *track) ? s : NULL;
}

/* Writes the event, and stores its track.  Returns the sequence; NULL, with
 * nothing written, if the caller has to use st_emit. */
static struct thread_sequence* write_quickly(const struct event_request* r,
                                             uint32_t mask, uint64_t* track) {
  if (r->left_out)
    return NULL;
  st_own.events_underway++;
  struct thread_sequence* s = ready_sequence(r, mask, track);
  st_own.events_underway--;
  if (!s || !s->templates)
    return NULL;
  const struct template_entry* e =
      template_cache_entry(s->templates, r->template);
  bool written = e->number == r->template->number &&
                 e->epoch == s->core.epoch &&
                 write_event(&s->core, e, r, *track);
  return written ? s : NULL;
}

/* Writes the END of a slice of a template.  Returns false, with nothing
 * written, if the caller has to use st_emit. */
static bool write_end(struct thread_sequence* s, uint64_t end, uint64_t track) {
  if (!track)
    return st_sequence_write_block(&s->core, end, &st_end_block, 0);
  return st_sequence_write_small(&s->core, ST_SLICE_END, end, 0, 0, track);
}

void template_request(struct event_request* r, EventTemplateObject* template,
                      PyObject* const* values, Py_ssize_t count) {
  while (count > 0 && values[count - 1] == Py_None)
    count--;
  r->category = template->category;
  r->template = template;
  r->name = template->name;
  r->argument_names = template->names[count];
  r->argument_values = values;
  r->more_arguments = template->constants;
}

uint32_t emit_template(const struct event_request* r, uint32_t mask) {
  if (UNLIKELY(st_own.events_underway))
    return 0;
  uint64_t track = 0;
  return LIKELY(write_quickly(r, mask, &track) != NULL) ? mask
                                                        : st_emit(r, mask);
}

/* Writes the END of a slice to the slots in `begun`, by st_emit. */
static void emit_end(const struct event_request* begin, uint32_t begun,
                     uint32_t since, uint64_t end) {
  struct event_request e = {.type = ST_SLICE_END,
                            .on_thread_track = begin->on_thread_track,
                            .track = begin->track,
                            .since = since,
                            .has_timestamp = true,
                            .timestamp = end};
  uint32_t running = st_slots_running_since(begun, since);
  if (running)
    st_emit(&e, running);
}

void emit_template_slice(const struct event_request* r, uint32_t mask,
                         uint64_t end) {
  if (UNLIKELY(st_own.events_underway))
    return;
  uint64_t track = 0;
  struct thread_sequence* s = write_quickly(r, mask, &track);
  if (LIKELY(s && write_end(s, end, track)))
    return;
  uint32_t since = st_start_counter;
  emit_end(r, s ? mask : st_emit(r, mask), since, end);
}
