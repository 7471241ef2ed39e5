/* The capsule of track_event_api.h. */
#include "track_event_api.h"

#include "track_event.h"

static uint32_t api_enabled(PyObject* category) {
  return ((CategoryObject*)category)->enabled;
}

static uint32_t api_start_counter(void) {
  return st_start_counter;
}

static uint64_t api_now(void) {
  return st_fast_now();
}

/* One slot, everything known: no allocation, no Python. */
static bool begin_code_fast(CategoryObject* category, PyObject* code,
                            uint32_t mask) {
  struct thread_state* t = st_thread;
  if (UNLIKELY(!t || t->busy || (mask & (mask - 1))))
    return false;
  int slot = __builtin_ctz(mask);
  struct thread_sequence* s = t->sequences[slot];
  if (UNLIKELY(!s || s->generation != st_instances[slot].generation))
    return false;
  uint32_t epoch = s->core.epoch;
  if (UNLIKELY(category->index >= s->category_capacity ||
               s->categories[category->index].epoch != epoch))
    return false;
  uint32_t name = identity_find(&s->codes, epoch, code);
  uint32_t location = identity_find(&s->locations, epoch, code);
  if (UNLIKELY(!name || !location))
    return false;
  return st_sequence_write_call(&s->core, st_fast_now(),
                                s->categories[category->index].iid, name,
                                location);
}

static uint32_t begin(struct event_request* r, uint32_t mask,
                      uint64_t timestamp) {
  r->type = ST_SLICE_BEGIN;
  r->on_thread_track = true;
  r->has_timestamp = timestamp != 0;
  r->timestamp = timestamp;
  return st_emit(r, mask);
}

static uint32_t api_begin_code(PyObject* category, PyObject* code,
                               uint64_t timestamp) {
  CategoryObject* c = (CategoryObject*)category;
  uint32_t mask = c->enabled;
  if (!mask)
    return 0;
  if (!timestamp && begin_code_fast(c, code, mask))
    return mask;
  struct event_request r = {.category = c, .code = code};
  return begin(&r, mask, timestamp);
}

static uint32_t api_begin_name(PyObject* category, PyObject* name,
                               uint64_t timestamp) {
  CategoryObject* c = (CategoryObject*)category;
  if (!c->enabled)
    return 0;
  struct event_request r = {.category = c, .name = name};
  return begin(&r, c->enabled, timestamp);
}

static bool end_fast(uint32_t mask) {
  struct thread_state* t = st_thread;
  if (UNLIKELY(!t || t->busy || (mask & (mask - 1))))
    return false;
  int slot = __builtin_ctz(mask);
  struct thread_sequence* s = t->sequences[slot];
  return s && s->generation == st_instances[slot].generation &&
         st_sequence_write_small(&s->core, ST_SLICE_END, st_fast_now(), 0, 0,
                                 0);
}

static void api_end(uint32_t mask, uint32_t start_counter, uint64_t timestamp) {
  uint32_t running = 0;
  for (int slot = 0; slot < MAX_INSTANCES; slot++) {
    if ((mask & (1u << slot)) && instance_runs_since(slot, start_counter))
      running |= 1u << slot;
  }
  if (!running || (!timestamp && end_fast(running)))
    return;
  struct event_request r = {.type = ST_SLICE_END,
                            .on_thread_track = true,
                            .has_timestamp = timestamp != 0,
                            .timestamp = timestamp};
  st_emit(&r, running);
}

static const struct st_track_event_api kApi = {
    .enabled = api_enabled,
    .begin_code = api_begin_code,
    .begin_name = api_begin_name,
    .end = api_end,
    .start_counter = api_start_counter,
    .now = api_now,
};

int add_track_event_api(PyObject* module) {
  PyObject* capsule = PyCapsule_New((void*)&kApi, ST_TRACK_EVENT_API, NULL);
  if (!capsule)
    return -1;
  int result = PyModule_AddObjectRef(module, "_track_event_api", capsule);
  Py_DECREF(capsule);
  return result;
}
