/* Instances: the sessions that record track events now, one slot each.
 *
 * Up to eight sessions record at once.  A category holds one bit per slot, and
 * an event goes to every slot whose bit is set, each with a sequence of its
 * own.  Each start of a slot increments its generation, which tells the state
 * of an earlier session from the current one.
 *
 * Life cycle: started and stopped by instance_functions.c; the slot keeps a
 * reference to its Arbiter until the next start.
 *
 * Threads: written with the GIL.
 */
#pragma once

#include "bind/common/python.h"
#include "core/arbiter.h"

enum { MAX_INSTANCES = 8 };

struct instance {
  bool active;
  /* The value that st_start_counter had when the slot was started. */
  uint32_t generation;
  PyObject* arbiter_object;
  struct st_arbiter* arbiter;
  uint32_t target_buffer;
  enum st_exhausted_policy policy;
  bool filter_annotations;
  /* The sum of the event counts of all freed sequences of the slot. */
  uint64_t events_written, events_lost;
};

extern struct instance st_instances[MAX_INSTANCES];
extern uint32_t st_start_counter;

/* Returns whether the slot records for the same session as when
 * st_start_counter was `generation`. */
static inline bool instance_runs_since(int slot, uint32_t generation) {
  return st_instances[slot].active &&
         (int32_t)(generation - st_instances[slot].generation) >= 0;
}
