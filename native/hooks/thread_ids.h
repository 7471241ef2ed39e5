/* Thread ids: the kernel's ids of threads as Python objects.
 *
 * The holder of a lock is the same thread again and again, and a slice with the same
 * objects as the last one is written faster (past_memo.h).
 *
 *   id | object        a direct-mapped table
 *
 * All functions need the GIL, and run no Python code.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#include "core/hot.h"

enum { ST_THREAD_IDS = 64 };

extern ST_OWN struct st_thread_id {
  uint64_t id;
  PyObject* object; /* NULL if the slot is empty. */
} st_thread_ids[ST_THREAD_IDS];

PyObject* st_thread_id_make(uint64_t id);
void st_thread_ids_clear(void);

/* Returns an id as an int, a borrowed reference that lasts until the next call;
 * None when out of memory. */
static inline PyObject* st_thread_id_object(uint64_t id) {
  const struct st_thread_id* slot = &st_thread_ids[id % ST_THREAD_IDS];
  if (__builtin_expect(slot->id == id && slot->object, 1))
    return slot->object;
  return st_thread_id_make(id);
}
