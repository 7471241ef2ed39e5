/* Lock users: the code that makes or takes a lock for itself.
 *
 * `threading` and `queue` make and take locks for their callers, so the user of
 * a lock is the innermost call outside of them.  Stretto takes locks, too: its
 * code is in a hidden folder.  What a code object is follows from its file name.
 * That is compared once, and then found by the address of the code object:
 *
 *   code object | role         a direct-mapped table of strong references
 *
 * Life cycle: st_lock_users_start() with the recording, st_lock_users_clear() at
 * its end.  All functions need the GIL, and make no frame objects.
 */
#pragma once

#include <stdbool.h>

#include "core/hot.h"
#include "hooks/python_layout.h"

/* A call, or none: then `code` is NULL. */
struct st_lock_user {
  PyCodeObject* code; /* A borrowed reference. */
  int instruction;    /* The offset of the running instruction, in bytes. */
};

/* Sets the hidden folder. */
void st_lock_users_start(PyObject* hidden);
void st_lock_users_clear(void);

/* Returns the user of the lock that this thread makes or takes. */
struct st_lock_user st_lock_user(PyThreadState* thread);
/* Whether that user is in the hidden folder. */
bool st_hidden_folder_uses_lock(PyThreadState* thread);
/* Whether this thread runs Condition.wait, which makes a lock for each wait. */
bool st_waits_for_notification(PyThreadState* thread);

/* --- The table, for the path of a written wait ---------------------------- */

enum { ST_LOCK_ROLES_LOG2 = 8, ST_LOCK_ROLES = 1 << ST_LOCK_ROLES_LOG2 };

enum st_lock_role { ST_LOCK_USER, ST_LOCK_LIBRARY, ST_LOCK_HIDDEN };

extern ST_OWN struct st_lock_code {
  PyObject* code; /* NULL if the slot is free. */
  enum st_lock_role role;
} st_lock_codes[ST_LOCK_ROLES];

/* Returns the slot where the code object at this address belongs. */
static inline struct st_lock_code* st_lock_code_slot(uint64_t code) {
  uint64_t mixed = code * 0x9E3779B97F4A7C15u;
  return &st_lock_codes[mixed >> (64 - ST_LOCK_ROLES_LOG2)];
}

/* The same as st_hidden_folder_uses_lock(), for a thread whose Python code has
 * called a method of the lock; usually without a call. */
static inline bool st_hidden_uses_lock(PyThreadState* thread) {
  uint64_t code = st_python_innermost_code(thread);
  const struct st_lock_code* known = st_lock_code_slot(code);
  bool is_known =
      __builtin_expect(code && (uint64_t)(uintptr_t)known->code == code, 1);
  if (__builtin_expect(is_known && known->role == ST_LOCK_USER, 1))
    return false;
  return st_hidden_folder_uses_lock(thread);
}
