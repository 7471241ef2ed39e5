/* Suspended calls: the open calls of a thread that are not on its present stack.
 *
 * A library such as greenlet gives a thread several stacks, one for each
 * greenlet, and switches between them.  The slices of the calls on the stack that
 * the thread leaves end there.  The calls are kept here, by the addresses of
 * their frames, until the thread is back on that stack: then their slices begin
 * again (stack_switches.h, call_stack.h).
 *
 * A call that ends without our knowing, such as one of a greenlet that is never
 * resumed, stays here until a new call has the same address.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The largest number of suspended calls of a thread. */
enum { ST_SUSPENDED_CALLS = 1 << 16 };

struct st_suspended_call {
  uint64_t address;    /* The address of the interpreter's frame; 0: no call. */
  const void* of;      /* The function: its code object, or the record of it. */
  uint32_t except;     /* The sessions that get no slice of the call. */
  bool found, sampled; /* See st_shown_frame. */
};

/* A hash table with open addressing; all zero: empty. */
struct st_suspended_calls {
  struct st_suspended_call* slots;
  uint32_t size, count; /* `size` is a power of two, or 0. */
  uint64_t last; /* The outermost call of the stack that was left last. */
};

/* Adds a call, in place of another one with the same address.  Returns false if
 * there are too many, or out of memory. */
bool st_suspended_add(struct st_suspended_calls* s,
                      const struct st_suspended_call* call);
/* Returns the call of a frame, or NULL. */
const struct st_suspended_call* st_suspended_find(
    const struct st_suspended_calls* s, uint64_t address);
/* Removes the call of a frame, if there is one. */
void st_suspended_remove(struct st_suspended_calls* s, uint64_t address);
/* Removes all calls, and frees the memory. */
void st_suspended_clear(struct st_suspended_calls* s);
