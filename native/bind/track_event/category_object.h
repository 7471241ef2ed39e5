/* The struct of the Python type Category (category.h).
 *
 * There is one object for each name.  It is never freed, so pointers to it need
 * no reference.  `enabled` has a bit for each slot of session_slots.h.  If a
 * category is disabled, its events read nothing else.
 *
 * `enabled` is loaded with relaxed order, because no other data depends on it:
 * the data for writing an event is in the slot, which the GIL guards.
 */
#pragma once

#include <stdatomic.h>

#include "bind/common/python.h"

enum { MAX_CATEGORIES = 65535 };

typedef struct {
  PyObject_HEAD
  /* One bit for each slot: whether the session in that slot records the
   * category. */
  _Atomic uint32_t enabled;
  uint32_t index;
  PyObject* name;
  PyObject* description;
  PyObject* tags; /* The tags of the category, a tuple of str. */
  PyObject* weakrefs;
} CategoryObject;

static inline uint32_t category_mask(const CategoryObject* category) {
  return atomic_load_explicit(&category->enabled, memory_order_relaxed);
}
