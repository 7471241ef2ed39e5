/* Adds the capsule of track_event_api.h to the module.
 */
#include "bind/common/handler_errors.h"
#include "bind/common/untraced_calls.h"
#include "bind/track_event/call_blocks.h"
#include "bind/track_event/emit.h"
#include "bind/track_event/past_slice.h"
#include "bind/track_event/process_track.h"
#include "bind/track_event/source_location.h"
#include "bind/track_event/thread_state.h"
#include "bind/track_event/track_event_api.h"
#include "core/fast_clock.h"
#include "core/hot.h"
#include "core/session_slots.h"

static uint32_t api_enabled(PyObject* category) {
  return category_mask((CategoryObject*)category);
}

ST_HOT static uint64_t api_now(void) {
  return st_fast_now();
}

static struct st_clock_pair* api_clock(void) {
  return &st_clock_pair;
}

static uint32_t begin(struct event_request* r, uint32_t mask,
                      uint64_t timestamp) {
  r->type = ST_SLICE_BEGIN;
  r->on_thread_track = true;
  r->has_timestamp = timestamp != 0;
  r->timestamp = timestamp;
  return st_emit(r, mask);
}

static uint32_t begin_new_code(CategoryObject* category, PyObject* code,
                               uint32_t mask, uint64_t timestamp,
                               uint64_t thread_time_us) {
  struct event_request r = {.category = category,
                            .code = code,
                            .name = code_name(code),
                            .thread_time_us = thread_time_us};
  uint32_t written = begin(&r, mask, timestamp);
  struct thread_sequence* s =
      written ? only_sequence(st_own.state, mask) : NULL;
  if (s)
    call_cache_put(s, category, code);
  return written;
}

static bool is_traced(const PyObject* code) {
  return st_own.state && st_own.state->traced_code == code;
}

static uint32_t api_take_traced(PyObject* code) {
  if (LIKELY(!is_traced(code)))
    return 0;
  st_own.state->traced_code = NULL;
  return st_own.state->traced_mask;
}

static inline uint32_t begin_code(CategoryObject* c, PyObject* code,
                                  uint32_t mask, uint64_t timestamp,
                                  uint64_t thread_time_us) {
  if (!mask)
    return 0;
  struct thread_sequence* s = only_sequence(st_own.state, mask);
  uint64_t time = timestamp ? timestamp : st_fast_now();
  if (LIKELY(s && time >= s->core.last_timestamp)) {
    struct st_call_slot* slot = call_cache_find(s->calls, c, code);
    if (LIKELY(slot && slot->epoch == s->core.epoch)) {
      if (LIKELY(st_sequence_write_block(&s->core, time, &slot->block,
                                         thread_time_us)))
        return mask;
    } else if (slot && !thread_time_us &&
               call_cache_begin_anew(s, c, slot, time)) {
      return mask;
    }
  }
  return begin_new_code(c, code, mask, timestamp, thread_time_us);
}

static uint32_t api_begin_code(PyObject* category, PyObject* code,
                               uint64_t timestamp, uint32_t except) {
  CategoryObject* c = (CategoryObject*)category;
  if (UNLIKELY(st_untraced_depth))
    return 0;
  if (UNLIKELY(!timestamp && is_traced(code)))
    except |= api_take_traced(code);
  return begin_code(c, code, category_mask(c) & ~except, timestamp, 0);
}

static uint32_t api_begin_name(PyObject* category, PyObject* name,
                               uint64_t timestamp) {
  CategoryObject* c = (CategoryObject*)category;
  uint32_t mask = category_mask(c);
  if (!mask || UNLIKELY(st_untraced_depth))
    return 0;
  struct thread_sequence* s =
      timestamp ? NULL : only_sequence(st_own.state, mask);
  if (s) {
    uint32_t iid = st_identity_find(&s->names, s->core.epoch, name);
    uint32_t category_iid = known_category(s, c);
    if (LIKELY(iid && category_iid &&
               st_sequence_write_small(&s->core, ST_SLICE_BEGIN, st_fast_now(),
                                       category_iid, iid, 0)))
      return mask;
  }
  struct event_request r = {.category = c, .name = name};
  return begin(&r, mask, timestamp);
}

static void end_in_all(uint32_t mask, uint32_t start_counter,
                       uint64_t timestamp) {
  uint32_t running = st_slots_running_since(mask, start_counter);
  struct event_request r = {.type = ST_SLICE_END,
                            .on_thread_track = true,
                            .since = start_counter,
                            .has_timestamp = timestamp != 0,
                            .timestamp = timestamp};
  if (running)
    st_emit(&r, running);
}

static void api_end(uint32_t mask, uint32_t start_counter, uint64_t timestamp) {
  struct thread_sequence* s = mask ? only_sequence(st_own.state, mask) : NULL;
  uint64_t time = timestamp ? timestamp : st_fast_now();
  if (UNLIKELY(!s || !st_slot_runs_since(s->slot, start_counter) ||
               !st_sequence_write_block(&s->core, time, &st_end_block, 0)))
    end_in_all(mask, start_counter, timestamp);
}

static void api_end_raised(uint32_t mask, uint32_t start_counter,
                           uint64_t timestamp, PyObject* type,
                           uint64_t thread_time_us) {
  uint32_t running = st_slots_running_since(mask, start_counter);
  struct event_request r = {.on_thread_track = true,
                            .since = start_counter,
                            .has_timestamp = timestamp != 0,
                            .timestamp = timestamp,
                            .thread_time_us = thread_time_us};
  if (running)
    st_emit_raised_end(&r, running, type);
}

static struct event_request past(const struct st_past_event* e,
                                 enum st_event_type type) {
  return (struct event_request){.type = type,
                                .on_thread_track = !e->track,
                                .track = (TrackObject*)e->track,
                                .has_timestamp = true,
                                .timestamp = e->timestamp,
                                .more_arguments = e->arguments,
                                .flow = e->flow,
                                .terminating_flow = e->terminating_flow,
                                .thread_time_us = e->thread_time_us};
}

static uint32_t api_begin_past(PyObject* category, PyObject* subject,
                               uint32_t except, const struct st_past_event* e) {
  CategoryObject* c = (CategoryObject*)category;
  uint32_t mask = category_mask(c) & ~except;
  bool is_code = PyCode_Check(subject);
  if (is_code && !e->track && !e->arguments && !e->flow)
    return begin_code(c, subject, mask, e->timestamp, e->thread_time_us);
  struct event_request r = past(e, ST_SLICE_BEGIN);
  r.category = c;
  r.code = is_code ? subject : NULL;
  r.name = is_code ? code_name(subject) : subject;
  return mask ? st_emit(&r, mask) : 0;
}

static void api_end_past(uint32_t mask, uint32_t start_counter,
                         const struct st_past_event* e) {
  struct thread_sequence* s = mask && !e->track && !e->arguments
                                  ? only_sequence(st_own.state, mask)
                                  : 0;
  if (LIKELY(s && st_slot_runs_since(s->slot, start_counter) &&
             st_sequence_write_block(&s->core, e->timestamp, &st_end_block,
                                     e->thread_time_us)))
    return;
  struct event_request r = past(e, ST_SLICE_END);
  r.since = start_counter;
  uint32_t running = st_slots_running_since(mask, start_counter);
  if (running)
    st_emit(&r, running);
}

static void api_instant_past(PyObject* category, PyObject* name,
                             const struct st_past_event* e) {
  uint32_t mask = category_mask((CategoryObject*)category);
  struct event_request r = past(e, ST_INSTANT);
  r.category = (CategoryObject*)category;
  r.name = name;
  if (mask)
    st_emit(&r, mask);
}

static PyObject* api_thread_track(uint64_t native_id) {
  uint8_t descriptor[ST_THREAD_DESCRIPTOR];
  uint64_t uuid;
  size_t size = describe_thread(native_id, descriptor, &uuid);
  return fixed_track_new(uuid, descriptor, size, NULL);
}

static bool api_has_thread_name(uint64_t native_id) {
  char name[ST_THREAD_NAME];
  return st_thread_name(native_id, name) != 0;
}

static void api_prepare(void) {
  thread_state_get();
}

static bool api_is_untraced(void) {
  return st_untraced_depth != 0;
}

static void api_set_code_name(PyObject* (*name_of)(PyObject* code)) {
  st_code_name_function = name_of;
}

static const struct st_track_event_api kApi = {
    .now = api_now,
    .clock = api_clock,
    .past_slice = emit_past_slice,
    .enabled = api_enabled,
    .begin_code = api_begin_code,
    .take_traced = api_take_traced,
    .begin_name = api_begin_name,
    .end = api_end,
    .end_raised = api_end_raised,
    .begin_past = api_begin_past,
    .end_past = api_end_past,
    .instant_past = api_instant_past,
    .thread_track = api_thread_track,
    .has_thread_name = api_has_thread_name,
    .prepare = api_prepare,
    .is_untraced = api_is_untraced,
    .set_code_name = api_set_code_name,
    .start_counter = &st_start_counter,
    .drop_own_error = st_drop_own_error,
};

ST_BIND_PART(track_event_capsule) {
  PyObject* capsule = PyCapsule_New((void*)&kApi, ST_TRACK_EVENT_API, NULL);
  if (!capsule)
    return -1;
  int result = PyModule_AddObjectRef(module, "_track_event_api", capsule);
  Py_DECREF(capsule);
  return result;
}
