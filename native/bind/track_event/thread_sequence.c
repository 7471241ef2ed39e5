#include "bind/track_event/thread_sequence.h"

#include "bind/track_event/call_cache.h"
#include "bind/track_event/past_memo.h"
#include "bind/track_event/template_cache.h"
#include "core/session_slots.h"
#include "core/track_event.h"

static void retain(void* arbiter) {
  Py_INCREF((PyObject*)arbiter);
}

struct thread_sequence* thread_sequence_new(int slot,
                                            const struct st_track* track) {
  struct st_session session;
  uint32_t generation = st_slot_join(slot, &session, retain);
  if (!generation)
    return NULL;
  struct thread_sequence* s = PyMem_RawCalloc(1, sizeof *s);
  if (!s || !st_sequence_init(&s->core, session.arbiter, session.target_buffer,
                              session.policy, track)) {
    PyMem_RawFree(s);
    Py_DECREF((PyObject*)session.owner);
    st_slot_add_counts(slot, generation, 0, 1);
    return NULL;
  }
  s->arbiter = session.owner;
  s->slot = slot;
  s->generation = generation;
  s->filter_annotations = session.filter_annotations;
  return s;
}

static void identity_cache_free(struct st_identity_cache* c) {
  for (uint32_t i = 0; c->slots && i <= c->mask; i++)
    Py_XDECREF(c->slots[i].key);
  st_identity_destroy(c);
}

void thread_sequence_close(struct thread_sequence* s) {
  if (!s->core.writer.arbiter)
    return;
  st_sequence_destroy(&s->core);
  s->core.writer.arbiter = NULL;
}

static void sequence_free(struct thread_sequence* s) {
  st_slot_add_counts(s->slot, s->generation, s->core.events_written,
                     s->core.events_lost);
  identity_cache_free(&s->names);
  identity_cache_free(&s->argument_names);
  identity_cache_free(&s->texts);
  identity_cache_free(&s->codes);
  identity_cache_free(&s->locations);
  call_cache_free(s->calls);
  template_cache_free(s->templates);
  past_memos_free(s->past);
  for (int i = 0; i < KEYWORD_ENTRIES; i++)
    Py_XDECREF(s->keywords[i].names);
  for (int i = 0; i < COUNTER_ENTRIES; i++)
    Py_XDECREF(s->counters[i].name);
  PyMem_RawFree(s->categories);
  Py_XDECREF(s->arbiter);
  PyMem_RawFree(s);
}

void thread_sequence_free_later(struct thread_sequence** list,
                                struct thread_sequence* s) {
  if (!s)
    return;
  s->next = *list;
  *list = s;
}

void thread_sequences_free(struct thread_sequence** list) {
  while (*list) {
    struct thread_sequence* s = *list;
    *list = s->next;
    sequence_free(s);
  }
}
