/* Known locks: where each lock was made, and which thread has taken it last.
 *
 * A table of slots, found by the lock's address:
 *
 *   lock | holder | code and instruction that made it | their text | the
 *   arguments of the last wait, which are often those of the next one
 *
 * Life cycle: st_known_lock_made() when a lock is made, st_known_lock_taken()
 * each time that it is taken; st_known_locks_clear() drops all.  An address that
 * is used again belongs to a new lock, which is made, too.
 *
 * Limits: a slot has one lock.  A new lock replaces one with the same slot,
 * about which nothing is known from then on.  All functions need the GIL.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

enum { ST_KNOWN_LOCKS_LOG2 = 13, ST_KNOWN_LOCKS = 1 << ST_KNOWN_LOCKS_LOG2 };

struct st_known_lock {
  const PyObject* lock; /* Not a reference: only compared. */
  uint64_t holder;      /* The kernel's id of a thread; 0 if unknown. */
  PyCodeObject* code;   /* NULL if unknown. */
  int instruction;      /* Its offset in the code, in bytes. */
  /* Whether a thread waits for a notification by this lock: Condition.wait(),
   * and with it Event.wait() and Queue.get(). */
  bool is_for_notification;
  PyObject* text; /* "file.py:12 (function)"; NULL if not made yet. */
  /* The arguments of the last wait's slice, a dict, or NULL; what they say of
   * the holder and the result. */
  PyObject* arguments;
  uint64_t named_holder;
  bool timed_out;
};

extern struct st_known_lock st_known_locks[ST_KNOWN_LOCKS];

static inline struct st_known_lock* st_known_lock_slot(const PyObject* lock) {
  uint64_t mixed = (uint64_t)(uintptr_t)lock * 0x9E3779B97F4A7C15u;
  return &st_known_locks[mixed >> (64 - ST_KNOWN_LOCKS_LOG2)];
}

/* Returns what is known about a lock; NULL if nothing is. */
static inline struct st_known_lock* st_known_lock(const PyObject* lock) {
  struct st_known_lock* known = st_known_lock_slot(lock);
  return known->lock == lock ? known : NULL;
}

static inline void st_known_lock_taken(const PyObject* lock, uint64_t holder) {
  struct st_known_lock* known = st_known_lock_slot(lock);
  if (!known->lock)
    known->lock = lock;
  if (known->lock == lock)
    known->holder = holder;
}

/* Returns the innermost call outside of `threading` and `queue`, which make and
 * take locks for their callers.  It is a new reference, and so is its code.
 * Both are NULL if there is none. */
PyFrameObject* st_lock_user(PyCodeObject** code);

/* The running code has made a lock. */
void st_known_lock_made(const PyObject* lock);

/* Returns where the lock was made, as a borrowed str; NULL if that is unknown,
 * or when out of memory. */
PyObject* st_known_lock_place(struct st_known_lock* known);
void st_known_locks_clear(void);
