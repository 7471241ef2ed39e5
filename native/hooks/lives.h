/* Lives: traces Python objects that have a long lifetime (core/life_table.h).
 *
 * A life holds a weak reference to its object.  A lane is a Python object that
 * writes the slices of an object.  Two Python functions use lanes:
 *
 *   look(lane, object, created, looked, suspended, now, resumes) -> lane
 *                     called before a step that needs a look (`resumes` is
 *                     True), at the end of a recording and, if `every` is set,
 *                     after each step (`resumes` is False); returns the lane
 *                     for the next call
 *   end(lane, object, created, looked, now)
 *                     called when the object's life ends
 *
 * `looked` is the time of the last look, or that of the first step before the
 * first look.  `suspended` is the end of the last step, 0 before the first one.
 * `lane` is None until look() has returned one.  Times are in ns.
 *
 * Unless `every` is set, an object gets a lane when it is older than the
 * threshold of auto detail.  Younger objects are only counted.
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
 * 0 if the object can't be traced, because nothing is traced or the rate is
 * over its limit; it is counted then. */
uint64_t st_lives_begin(struct st_lives* lives);
/* Returns the life of an object; a new one if it has none.  Returns NULL when
 * out of memory, or if the object does not support weak references. */
struct st_life* st_lives_add(struct st_lives* lives, PyObject* object,
                             uint64_t created);
/* Returns the life of an object; NULL if it has none. */
struct st_life* st_lives_of(struct st_lives* lives, PyObject* object);
/* Handles the beginning of a step.  May run Python code that ends the life, so
 * `life` must not be used afterwards. */
void st_lives_resume(struct st_lives* lives, struct st_life* life,
                     PyObject* object, uint64_t now);
/* Handles the end of a step.  Returns the object's life; NULL if it has
 * none. */
struct st_life* st_lives_suspend(struct st_lives* lives, PyObject* object,
                                 uint64_t now);
/* Handles the end of a step that wasn't the last one.  If `every` is set, looks
 * at the object: the trace is sorted piece by piece then, so the begin of a long
 * wait must not be written at its end.  May run Python code that ends the life.
 */
void st_lives_wait(struct st_lives* lives, struct st_life* life,
                   PyObject* object, uint64_t now);
/* Ends the life of an object. */
void st_lives_finish(struct st_lives* lives, struct st_life* life,
                     PyObject* object, uint64_t now);
/* Looks at all objects.  Returns a tuple of three counts: objects without a lane
 * whose life is too short, objects without a lane over the limit of the rate,
 * and waits that are left out because looks took too long.
 * Returns NULL with an exception set on failure. */
PyObject* st_lives_look_at_all(struct st_lives* lives);
