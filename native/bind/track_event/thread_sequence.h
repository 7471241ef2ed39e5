/* A thread's sequence of packets for one slot, with its caches of interned ids.
 *
 * Interned ids are valid for one epoch of the core sequence.  A new epoch
 * begins when the sequence announces its incremental state again: in each
 * chunk, and after a loss.  The caches hold strong references to their objects,
 * so a cached address never belongs to a new object.
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
struct past_memos;
struct template_cache;

/* The keywords of a call site: argument names with their ids, and the options
 * track, flow and terminating_flow. */
struct keyword_entry {
  /* The names of the keywords: a strong reference to a tuple of str. */
  PyObject* names;
  uint32_t epoch;
  /* The number of keywords up to the last one that put_keywords() has to
   * encode: it skips the option `track`. */
  uint8_t count;
  /* Whether the call site's last event had more than 127 bytes. */
  bool wide;
  /* The index of the option `track` among the keywords; -1 if absent. */
  int8_t track;
  /* For each keyword: which option it is, as a value of enum event_part. */
  uint8_t parts[MAX_PLAIN_ARGUMENTS];
  /* For each keyword: the id of its name; 0 for an option. */
  uint32_t iids[MAX_PLAIN_ARGUMENTS];
};

/* A counter whose track is below the track of the process.  It is cached by the
 * name object that the caller passes. */
struct counter_entry {
  PyObject* name; /* The name of the counter: a strong reference to a str. */
  uint32_t epoch;
  struct st_event_block block; /* The event without its value. */
};

struct thread_sequence {
  /* The memos of slices of templates; NULL until they are needed. */
  struct past_memos* past;
  /* The template cache of the thread; NULL until it is needed. */
  struct template_cache* templates;
  /* The generation of the slot's session when the sequence was made. */
  uint32_t generation;
  bool filter_annotations; /* Whether the session leaves out arguments. */
  struct st_sequence core;
  /* A strong reference to the Arbiter, because `core` writes to it. */
  PyObject* arbiter;
  /* The next sequence in a list of sequences that have to be freed. */
  struct thread_sequence* next;
  int slot;
  /* The epoch in which the name of the thread was last checked. */
  uint32_t described_epoch;
  /* The last interning id that was given to a log message. */
  uint32_t log_messages;
  struct st_identity_cache names;
  struct st_identity_cache argument_names;
  struct st_identity_cache texts; /* Values of arguments: past_slice.h. */
  /* A cache from code objects to the ids of their names. */
  struct st_identity_cache codes;
  /* A cache from code objects to the ids of their source locations. */
  struct st_identity_cache locations;
  /* The call cache of the thread; NULL until it is needed. */
  struct call_cache* calls;
  struct keyword_entry keywords[KEYWORD_ENTRIES];
  struct counter_entry counters[COUNTER_ENTRIES];
  /* The names that were written inline once: an entry is hash ^ epoch, at the
   * index given by the low bits of the name's hash. */
  uint32_t inline_names[INLINE_NAME_ENTRIES];
  struct {
    uint32_t epoch, iid;
  } * categories;
  uint32_t category_capacity;
};

/* Returns a new sequence for the current session of the slot.  Returns NULL if
 * the slot does not record.  Also returns NULL when out of memory or out of
 * writer ids, and then counts the event as lost. */
struct thread_sequence* thread_sequence_new(int slot,
                                            const struct st_track* track);

/* Returns the chunk and the writer id of the sequence to the arbiter, and frees
 * the sequence's native memory.  Needs no GIL. */
void thread_sequence_close(struct thread_sequence* s);

/* Puts a closed sequence, which may be NULL, on a list.  It is freed later,
 * when Python code may run. */
void thread_sequence_free_later(struct thread_sequence** list,
                                struct thread_sequence* s);
void thread_sequences_free(struct thread_sequence** list);

/* Returns the interning id of the category if it is cached, else 0. */
static inline uint32_t known_category(const struct thread_sequence* s,
                                      const CategoryObject* category) {
  uint32_t index = category->index;
  bool known = index < s->category_capacity &&
               s->categories[index].epoch == s->core.epoch;
  return LIKELY(known) ? s->categories[index].iid : 0;
}
