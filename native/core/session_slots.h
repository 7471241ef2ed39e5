/* Session slots: the sessions that record track events now, one slot each.
 *
 * Up to eight sessions record at once.  A category holds one bit per slot, and
 * an event goes to every slot whose bit is set, each with a sequence of its
 * own.  Each start has a generation of its own, which tells the state of an
 * earlier session from the current one.
 *
 * A sequence is made by st_slot_join(), which retains the owner of the slot's
 * arbiter.  So a session may stop, and its slot start again, while threads
 * still write events of the earlier session.
 *
 * Threads: any, no GIL is needed.  `running` is stored with release and loaded
 * with acquire: a thread that reads a generation also sees the bits and tables
 * that were written before its start.  A mutex guards the other members.  It is
 * a leaf: while it is held, only `retain` is called.
 */
#pragma once

#include "arbiter.h"

enum { MAX_INSTANCES = 8 };

struct st_session {
  struct st_arbiter* arbiter;
  void* owner; /* The object that owns the arbiter. */
  uint32_t target_buffer;
  enum st_exhausted_policy policy;
  bool filter_annotations;
};

struct st_session_slot {
  /* The generation of the slot's session, or 0 if the slot doesn't record. */
  _Atomic uint32_t running;
  uint32_t generation; /* The generation of the slot's last start. */
  struct st_session session;
  /* The sums of the event counts of closed sequences.  Only the sequences since
   * the slot's last start count. */
  uint64_t events_written, events_lost;
};

extern struct st_session_slot st_session_slots[MAX_INSTANCES];
/* The generation of the last start of any slot.  It is only compared with other
 * generations. */
extern _Atomic uint32_t st_start_counter;

static inline uint32_t st_slot_running(int slot) {
  return atomic_load_explicit(&st_session_slots[slot].running,
                              memory_order_acquire);
}

/* Returns whether the slot records for the same session as at the time at which
 * st_start_counter was `generation`. */
static inline bool st_slot_runs_since(int slot, uint32_t generation) {
  uint32_t running = st_slot_running(slot);
  return running && (int32_t)(generation - running) >= 0;
}

/* Returns the slots in a mask for which st_slot_runs_since() is true. */
static inline uint32_t st_slots_running_since(uint32_t mask,
                                              uint32_t generation) {
  uint32_t running = 0;
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    int slot = __builtin_ctz(rest);
    if (st_slot_runs_since(slot, generation))
      running |= 1u << slot;
  }
  return running;
}

/* Starts a session.  Returns false if the slot is in use; else the slot keeps
 * the caller's reference to the owner until the slot stops. */
bool st_slot_start(int slot, const struct st_session* session);
/* Stops the slot's session.  Returns the owner, which the caller releases, or
 * NULL if the slot did not record. */
void* st_slot_stop(int slot);
/* Copies the slot's session and retains its owner.  Returns the session's
 * generation, or 0 if the slot does not record. */
uint32_t st_slot_join(int slot, struct st_session* session,
                      void (*retain)(void* owner));

/* Adds the counts of a closed sequence, unless the slot was started again. */
void st_slot_add_counts(int slot, uint32_t generation, uint64_t written,
                        uint64_t lost);
/* Reads the sums of all counts that st_slot_add_counts() has added.  Returns
 * the generation of the session to which they belong. */
uint32_t st_slot_counts(int slot, uint64_t* written, uint64_t* lost);
