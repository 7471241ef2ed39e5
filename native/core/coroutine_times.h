/* Coroutine times: when the calls of coroutines have begun and ended.
 *
 * A look at a suspended task (life_table.h) finds which coroutines it awaits.
 * It does not find when their calls have begun, nor when the calls of an earlier
 * look have ended.  This table knows these times from events and from stack
 * samples:
 *
 *   began    an event: the first step of the call has begun
 *   seen     samples: the call's step has lasted from `first`, or `unsure_ns`
 *            earlier, until `last` or later
 *   ended    an event: the call has returned
 *
 * A call is found by the address of its frame, which lies in the coroutine.
 * Each address has one possible slot, so calls replace each other: a time may be
 * unknown.  A frame's address is used again for later calls, so each question
 * has a range of time.  st_coroutine_watch() protects the end of a call until it
 * was asked for.
 *
 * An asynchronous generator has a call for each item.
 *
 * Threads: the caller guards the table.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { ST_COROUTINE_SLOTS = 1 << 13 };

struct st_coroutine_slot {
  uint64_t frame; /* 0: empty. */
  const void* code;
  /* Times in ns, 0 if unknown. */
  uint64_t began, first, unsure_ns, last, ended;
  /* The last call has ended: the next step begins another one. */
  bool returned;
};

struct st_coroutine_times {
  struct st_coroutine_slot* slots; /* NULL while nothing is noted. */
};

/* Makes the table.  Returns false when out of memory. */
bool st_coroutine_times_init(struct st_coroutine_times* t);
void st_coroutine_times_destroy(struct st_coroutine_times* t);

void st_coroutine_began(struct st_coroutine_times* t, uint64_t frame,
                        const void* code, uint64_t time);
/* A step of an asynchronous generator begins.  It is the first one for an item
 * if the generator has ended its last call. */
void st_coroutine_continues(struct st_coroutine_times* t, uint64_t frame,
                            const void* code, uint64_t time);
/* Samples have found a step.  `first` is 0 if its begin is known by an event. */
void st_coroutine_seen(struct st_coroutine_times* t, uint64_t frame,
                       const void* code, uint64_t first, uint64_t unsure_ns,
                       uint64_t last);
/* A call has returned, or has yielded an item. */
void st_coroutine_ended(struct st_coroutine_times* t, uint64_t frame,
                        const void* code, uint64_t time);
/* Keeps the first end of a call from now on, although a later call may use the
 * same address. */
void st_coroutine_watch(struct st_coroutine_times* t, uint64_t frame,
                        const void* code);

/* Return the begin or the end of a call that happened in the range from `after`
 * to `before`; 0 if unknown.  Set *unsure_ns: the call may have begun as much
 * earlier, or ended as much later. */
uint64_t st_coroutine_begin(const struct st_coroutine_times* t, uint64_t frame,
                            const void* code, uint64_t after, uint64_t before,
                            uint64_t* unsure_ns);
uint64_t st_coroutine_end(const struct st_coroutine_times* t, uint64_t frame,
                          const void* code, uint64_t after, uint64_t before,
                          uint64_t* unsure_ns);
