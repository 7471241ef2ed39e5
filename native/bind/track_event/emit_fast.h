/* The fast path of events: one session, all ids cached, no argument to convert.
 *
 * Inline, for the callers in category_events.c, slice.c and emit_plain.c.  It
 * runs no Python, allocates nothing and takes no lock, except that a full chunk
 * is handed to the arbiter.
 */
#pragma once

#include "bind/track_event/task_track.h"
#include "core/fast_clock.h"

/* The cached ids and the sequence that a hot path needs for an event. */
struct current {
  struct thread_sequence* sequence;
  uint32_t category_iid, name_iid;
  /* The uuid of the event's track; 0 for the thread's own track. */
  uint64_t track_uuid;
  /* The event's name if it has to be written inline, else NULL. */
  const char* name;
  size_t name_size;
};

/* Fills *c if only one slot records the event, the ids of the category and the
 * name are cached, and the current track was described.  Otherwise returns
 * false: the caller has to use st_emit.  If `name` is NULL, the event has no
 * category and no name (END). */
static inline bool find_current(struct current* c, CategoryObject* category,
                                PyObject* name, uint32_t mask) {
  struct thread_state* t = st_thread;
  if (UNLIKELY(!t || t->busy || (mask & (mask - 1))))
    return false;
  if (UNLIKELY(context_changed(t, PyThreadState_Get())))
    return false;
  int slot = __builtin_ctz(mask);
  c->name = NULL;
  struct thread_sequence* s = c->sequence = t->sequences[slot];
  if (UNLIKELY(!s || s->generation != st_slot_running(slot)))
    return false;
  uint32_t epoch = s->core.epoch;
  c->category_iid = c->name_iid = 0;
  if (name) {
    c->category_iid = known_category(s, category);
    c->name_iid = st_identity_find(&s->names, epoch, name);
    if (UNLIKELY(!c->name_iid || !c->category_iid))
      return false;
  }
  c->track_uuid = 0;
  if (t->task_track) {
    c->track_uuid = t->task_track->core.uuid;
    if (UNLIKELY(!st_sequence_has_track(&s->core, c->track_uuid)))
      return false;
  }
  return true;
}

/* Writes an event without arguments.  Returns false if the caller has to use
 * st_emit. */
static inline bool emit_fast(enum st_event_type type, CategoryObject* category,
                             PyObject* name, uint32_t mask) {
  struct current c;
  return find_current(&c, category, name, mask) &&
         st_sequence_write_small(&c.sequence->core, type, st_fast_now(),
                                 c.category_iid, c.name_iid, c.track_uuid);
}

/* Writes the END of a slice on a track.  Returns false if the slice's track is
 * not the current track, or if the caller has to use st_emit for another
 * reason. */
static inline bool emit_end_fast(uint64_t track_uuid, uint32_t mask) {
  struct current c;
  return find_current(&c, NULL, NULL, mask) &&
         track_uuid == (c.track_uuid ? c.track_uuid : st_thread->track.uuid) &&
         st_sequence_write_small(&c.sequence->core, ST_SLICE_END, st_fast_now(),
                                 0, 0, c.track_uuid);
}

/* Writes the BEGIN of a slice that is named and located by a code object.
 * Returns false if the caller has to use st_emit. */
static inline bool emit_code(CategoryObject* category, PyObject* code,
                             uint32_t mask) {
  struct current c;
  if (!find_current(&c, category, NULL, mask))
    return false;
  struct thread_sequence* s = c.sequence;
  uint32_t epoch = s->core.epoch;
  struct st_small_call call = {
      .category_iid = known_category(s, category),
      .name_iid = st_identity_find(&s->codes, epoch, code),
      .location_iid = st_identity_find(&s->locations, epoch, code),
      .track_uuid = c.track_uuid};
  return call.category_iid && call.name_iid && call.location_iid &&
         st_sequence_write_call(&s->core, st_fast_now(), &call);
}
