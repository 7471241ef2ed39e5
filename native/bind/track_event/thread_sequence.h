/* A thread's sequence of packets for one slot, with its caches of interned ids.
 *
 * Ids hold for one epoch of the core sequence: its state is announced anew in
 * each chunk, and after a loss.  A cached object is kept by a strong reference,
 * so that the address of an object that was freed never names another one.
 *
 * Life cycle: made with a thread's first event for a slot (thread_state.h).
 * `close` returns the chunk and the ids, also without the GIL, on a thread that
 * ends; `free` needs the GIL and may run Python.
 */
#pragma once

#include "bind/track_event/category_object.h"
#include "core/identity_cache.h"
#include "core/track_event.h"

enum {
  MAX_PLAIN_ARGUMENTS = 8,
  KEYWORD_ENTRIES = 32,
};

struct call_cache;
struct template_cache;

/* The names of one call site, none of them an option, with their ids. */
struct keyword_entry {
  PyObject* names; /* strong: tuple of str */
  uint32_t epoch;
  uint32_t count;
  uint32_t iids[MAX_PLAIN_ARGUMENTS];
};

struct thread_sequence {
  struct st_sequence core;
  PyObject* arbiter;            /* strong: core writes through it */
  struct thread_sequence* next; /* among those that are to be freed */
  int slot;
  uint32_t generation;      /* of the instance it was made for */
  uint32_t described_epoch; /* in which the thread's name was looked at */
  struct st_identity_cache names;
  struct st_identity_cache argument_names;
  struct st_identity_cache codes;     /* code object -> name iid */
  struct st_identity_cache locations; /* code object -> source location iid */
  struct call_cache* calls;           /* or NULL: see call_cache.h */
  struct template_cache* templates;   /* or NULL: see template_cache.h */
  struct keyword_entry keywords[KEYWORD_ENTRIES];
  struct {
    uint32_t epoch, iid;
  } * categories;
  uint32_t category_capacity;
};

/* A sequence for what the slot records now.  NULL: no memory or no writer id;
 * the event is counted as lost in the second case. */
struct thread_sequence* thread_sequence_new(int slot,
                                            const struct st_track* track);

/* Returns the chunk, the ids and native memory.  Needs no GIL. */
void thread_sequence_close(struct thread_sequence* s);

/* Puts a closed sequence on a list, to be freed when Python may run.  NULL as
 * sequence is allowed. */
void thread_sequence_free_later(struct thread_sequence** list,
                                struct thread_sequence* s);
void thread_sequences_free(struct thread_sequence** list);

/* The category's cached id, or 0. */
static inline uint32_t known_category(const struct thread_sequence* s,
                                      const CategoryObject* category) {
  uint32_t index = category->index;
  bool known = index < s->category_capacity &&
               s->categories[index].epoch == s->core.epoch;
  return LIKELY(known) ? s->categories[index].iid : 0;
}
