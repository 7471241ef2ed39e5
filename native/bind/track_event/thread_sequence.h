/* A thread's sequence of packets for one slot, with its caches of interned ids.
 *
 * Interned ids are valid for one epoch of the core sequence: its state is
 * announced again in each chunk, and after a loss.  The caches hold strong
 * references to their objects, so a cached address never belongs to a new
 * object.
 *
 * Life cycle: made with a thread's first event for a slot (thread_state.h).
 * `close` returns the chunk and the writer id; an ending thread calls it
 * without the GIL. `free` needs the GIL and may run Python code.
 */
#pragma once

#include "bind/track_event/category_object.h"
#include "core/identity_cache.h"
#include "core/track_event.h"

enum {
  MAX_PLAIN_ARGUMENTS = 8,
  KEYWORD_ENTRIES = 32,
  COUNTER_ENTRIES = 16,
  INLINE_NAME_ENTRIES = 64,
};

struct call_cache;
struct template_cache;

/* The keywords of a call site: names of arguments, with their ids, and the
 * options track, flow and terminating_flow. */
struct keyword_entry {
  PyObject* names; /* A strong reference to a tuple of str. */
  uint32_t epoch;
  uint8_t count;
  int8_t track;                       /* Index of the option; -1: absent. */
  uint8_t parts[MAX_PLAIN_ARGUMENTS]; /* enum event_part of each option. */
  uint32_t iids[MAX_PLAIN_ARGUMENTS]; /* 0 for an option. */
};

/* A counter below the process, by the name object that the caller passes. */
struct counter_entry {
  PyObject* name; /* A strong reference to a str. */
  uint32_t epoch;
  uint64_t track_uuid;
};

struct thread_sequence {
  struct st_sequence core;
  PyObject* arbiter; /* A strong reference, because `core` writes to it. */
  /* The next in a list of sequences to be freed. */
  struct thread_sequence* next;
  int slot;
  /* The generation of the instance when the sequence was made. */
  uint32_t generation;
  /* The epoch in which the thread's name was last checked. */
  uint32_t described_epoch;
  uint32_t log_messages; /* The id of the last log message. */
  struct st_identity_cache names;
  struct st_identity_cache argument_names;
  struct st_identity_cache codes; /* The name id of each code object. */
  /* The location id of each code object. */
  struct st_identity_cache locations;
  struct call_cache* calls; /* The call cache; NULL until needed. */
  /* The template cache; NULL until needed. */
  struct template_cache* templates;
  struct keyword_entry keywords[KEYWORD_ENTRIES];
  struct counter_entry counters[COUNTER_ENTRIES];
  /* Names that were written inline, by the low bits of their hash: hash ^
   * epoch. */
  uint32_t inline_names[INLINE_NAME_ENTRIES];
  struct {
    uint32_t epoch, iid;
  } * categories;
  uint32_t category_capacity;
};

/* Returns a new sequence for the slot's current session.  NULL when out of
 * memory or out of writer ids; in the second case the event is counted as
 * lost. */
struct thread_sequence* thread_sequence_new(int slot,
                                            const struct st_track* track);

/* Returns the sequence's chunk and writer id, and frees its native memory.
 * Needs no GIL. */
void thread_sequence_close(struct thread_sequence* s);

/* Puts a closed sequence on a list, to be freed when Python code may run.  The
 * sequence may be NULL. */
void thread_sequence_free_later(struct thread_sequence** list,
                                struct thread_sequence* s);
void thread_sequences_free(struct thread_sequence** list);

/* Returns the category's cached interning id, or 0. */
static inline uint32_t known_category(const struct thread_sequence* s,
                                      const CategoryObject* category) {
  uint32_t index = category->index;
  bool known = index < s->category_capacity &&
               s->categories[index].epoch == s->core.epoch;
  return LIKELY(known) ? s->categories[index].iid : 0;
}
