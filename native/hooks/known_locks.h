/* Known locks: where each lock was made, and which thread has taken it last.
 *
 * A table of slots in sets of four; the lock's address tells which set:
 *
 *   lock | holder | code and instruction that made it | their text
 *
 * Life cycle: st_known_lock_made() when a lock is made; the owner of the table sets
 * its holder each time that it is taken; st_known_locks_clear() drops all.  An
 * address that is used again belongs to a new lock, which is made, too.
 *
 * Limits: a new lock whose set is full replaces one of the four, about which
 * nothing is known from then on.  Nobody tells of a lock that ends: its slot stays
 * used.  All functions need the GIL.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/hot.h"

enum {
  ST_KNOWN_LOCK_SETS_LOG2 = 11,
  ST_KNOWN_LOCKS_PER_SET = 4,
  ST_KNOWN_LOCKS = ST_KNOWN_LOCKS_PER_SET << ST_KNOWN_LOCK_SETS_LOG2
};

struct st_known_lock {
  /* Not a reference: only compared.  Each slot is a line of the cache. */
  _Alignas(64) const PyObject* lock;
  uint64_t holder;    /* The kernel's id of a thread; 0 if unknown. */
  uint32_t waiting;   /* How many threads wait for it. */
  PyCodeObject* code; /* NULL if unknown. */
  int instruction;    /* Its offset in the code, in bytes. */
  /* Whether a thread waits for a notification by this lock: Condition.wait(),
   * and with it Event.wait() and Queue.get(). */
  bool is_for_notification;
  PyObject* text; /* "file.py:12 (function)"; NULL if not made yet. */
};

extern ST_OWN struct st_known_lock st_known_locks[ST_KNOWN_LOCKS];
/* A bit for each slot that has been used since the table was cleared. */
extern ST_OWN uint64_t st_known_locks_used[ST_KNOWN_LOCKS / 64];

/* Gives the slot to a lock, about which nothing is known yet. */
static inline void st_known_lock_claim(struct st_known_lock* known,
                                       const PyObject* lock) {
  size_t slot = (size_t)(known - st_known_locks);
  st_known_locks_used[slot / 64] |= (uint64_t)1 << slot % 64;
  known->lock = lock;
}

/* Looks in the other slots of the set. */
struct st_known_lock* st_known_lock_slot_in(struct st_known_lock* set,
                                            const PyObject* lock);

/* Returns the slot of a lock, an unused one for it, or that of another lock if the
 * set is full. */
static inline struct st_known_lock* st_known_lock_slot(const PyObject* lock) {
  uint64_t mixed = (uint64_t)(uintptr_t)lock * 0x9E3779B97F4A7C15u;
  size_t set = mixed >> (64 - ST_KNOWN_LOCK_SETS_LOG2);
  struct st_known_lock* first = &st_known_locks[set * ST_KNOWN_LOCKS_PER_SET];
  return __builtin_expect(first->lock == lock, 1)
             ? first
             : st_known_lock_slot_in(first, lock);
}

/* Gives the slot to a lock about which nothing is known, if it is unused.  Whether
 * the slot is the lock's now. */
static inline bool st_known_lock_claims(struct st_known_lock* slot,
                                        const PyObject* lock) {
  if (__builtin_expect(!slot->lock, 0))
    st_known_lock_claim(slot, lock);
  return slot->lock == lock;
}

/* The code that this thread runs has made a lock. */
void st_known_lock_made(const PyObject* lock, PyThreadState* thread);

/* Makes the text of a lock that has none, and whose code is known. */
void st_known_lock_make_text(struct st_known_lock* known);

/* Returns where the lock was made, as a borrowed str; NULL if that is unknown,
 * or when out of memory. */
static inline PyObject* st_known_lock_place(struct st_known_lock* known) {
  if (__builtin_expect(!known->text && known->code, 0))
    st_known_lock_make_text(known);
  return known->text;
}
void st_known_locks_clear(void);
