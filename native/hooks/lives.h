/* Lives: Python objects that are traced from a begin to an end that are far
 * apart (core/life_table.h), with a lane for each that lasts long enough.
 *
 * A life holds a weak reference to its object.  A lane is a Python object that
 * writes slices:
 *
 *   look(lane, object, created, looked, suspended, now, resumes) -> lane
 *                     before a step, after a wait long enough to be seen;
 *                     at the end of a recording without a step
 *   end(lane, object, created, looked, now)
 *                     when the object's life ends
 *
 * `looked` is the time of the last look, at first that of the first step.
 * `suspended` is the end of the last step, 0 before the first one.  `lane` is
 * None at first.
 *
 * Unless each object has a lane, a lane needs an object as old as the threshold
 * of auto detail.  Other objects are only counted.
 *
 * Threads: the GIL guards all lives.  The callbacks may release it, so a life
 * is searched again after each callback.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "core/life_table.h"

struct st_lives {
  struct st_life_table table;
  PyObject *look, *end;
  uint64_t too_short, over_limit;
};

/* Traces objects from now on.  Returns false with an exception set on failure.
 */
bool st_lives_watch(struct st_lives* lives, PyObject* look, PyObject* end,
                    uint64_t lives_per_second, bool every);
void st_lives_unwatch(struct st_lives* lives);

/* Returns the current time, at which the life of a new object begins.  Returns
 * 0 if the object is not traced: it is counted. */
uint64_t st_lives_begin(struct st_lives* lives);
/* Returns the life of an object; a new one if it has none.  Returns NULL when
 * out of memory, or if the object does not support weak references. */
struct st_life* st_lives_add(struct st_lives* lives, PyObject* object,
                             uint64_t created);
/* Returns the life of an object; NULL if it has none. */
struct st_life* st_lives_of(struct st_lives* lives, PyObject* object);
/* A step of an object begins.  The life may end meanwhile. */
void st_lives_resume(struct st_lives* lives, struct st_life* life,
                     PyObject* object, uint64_t now);
/* A step of an object has ended.  Returns its life; NULL if it has none. */
struct st_life* st_lives_suspend(struct st_lives* lives, PyObject* object,
                                 uint64_t now);
/* Ends the life of an object. */
void st_lives_finish(struct st_lives* lives, struct st_life* life,
                     PyObject* object, uint64_t now);
/* Looks at all objects.  Returns the numbers of objects without a lane: those
 * too short, and those over the limit. */
PyObject* st_lives_look_at_all(struct st_lives* lives);
