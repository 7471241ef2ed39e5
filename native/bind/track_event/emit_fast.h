/* The fast path of events: all ids cached, no argument to convert.
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

/* Returns the state of the calling thread.  Returns NULL if the caller has to
 * use st_emit. */
static inline struct thread_state* ready_thread(void) {
  struct thread_state* t = st_own.state;
  if (UNLIKELY(!t || t->busy))
    return NULL;
  return UNLIKELY(context_changed(t)) ? NULL : t;
}

/* Fills *c if the ids of the event are cached in the thread's sequence for the
 * slot, and the current track was described.  Returns false if the caller has
 * to use st_emit.  If `name` is NULL, the event has no category and no name
 * (END). */
static inline bool find_current(struct current* c, struct thread_state* t,
                                int slot, CategoryObject* category,
                                PyObject* name) {
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

/* Writes an event without arguments to the slots in `mask`.  Returns the slots
 * for which the caller has to use st_emit. */
static ALWAYS_INLINE uint32_t write_ids(struct thread_state* t,
                                        enum st_event_type type,
                                        CategoryObject* category,
                                        PyObject* name, uint32_t mask) {
  uint64_t timestamp = st_fast_now();
  do {
    struct current c;
    if (!find_current(&c, t, __builtin_ctz(mask), category, name) ||
        !st_sequence_write_small(&c.sequence->core, type, timestamp,
                                 c.category_iid, c.name_iid, c.track_uuid))
      break;
    mask &= mask - 1;
  } while (UNLIKELY(mask));
  return mask;
}

static inline uint32_t emit_fast(enum st_event_type type,
                                 CategoryObject* category, PyObject* name,
                                 uint32_t mask) {
  struct thread_state* t = ready_thread();
  return LIKELY(t != NULL) ? write_ids(t, type, category, name, mask) : mask;
}

/* Does what emit_fast does, for the END of a slice on a track.  Writes nothing
 * if this track is not the current track. */
static inline uint32_t emit_end_fast(uint64_t track_uuid, uint32_t mask) {
  struct thread_state* t = ready_thread();
  if (UNLIKELY(!t || track_uuid != current_track_uuid(t)))
    return mask;
  return write_ids(t, ST_SLICE_END, NULL, NULL, mask);
}

/* Writes the BEGIN of a slice that is named and located by a code object, if
 * only one slot records the slice.  Returns false if the caller has to use
 * st_emit. */
static inline bool emit_code(CategoryObject* category, PyObject* code,
                             uint32_t mask) {
  struct thread_state* t = ready_thread();
  struct current c;
  if (UNLIKELY(!t || (mask & (mask - 1))) ||
      !find_current(&c, t, __builtin_ctz(mask), category, NULL))
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
