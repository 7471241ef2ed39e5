/* Task lives: the asyncio tasks that are not done, by address.
 *
 * A life holds a weak reference to its task, and the times of the task's
 * creation and of its last step.  A task that lives long enough to be seen gets
 * a lane, a Python object that writes the task's slices:
 *
 *   look(lane, task, created, looked, suspended, now, resumes) -> lane
 *                     before a step, after a wait long enough to be seen;
 *                     at the end of a recording without a step
 *   end(lane, task, created, looked, now)
 *                     when the task is done
 *   failed(exception)   when an exception has ended a task, of any age
 *
 * `looked` is the time of the last look, at first that of the first step.
 * `suspended` is the end of the last step, 0 before the first one.  `lane` is
 * None at first.
 *
 * With auto detail, a lane needs a task as old as the threshold.  The rates of
 * new lives and of new lanes are limited.  Other tasks are only counted.
 *
 * Threads: the GIL guards all lives.  The callbacks may release it, so a life
 * is searched again after each callback.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>

/* Handles the begin of a call of Handle._run.  Returns a new reference to the
 * task whose step this call is.  Returns NULL if the call is not a step of a
 * task, or if the task has no life.  Never sets an exception. */
PyObject* st_task_step_begins(PyObject* handle, uint64_t now);
/* Handles the end of a task's step.  Releases the reference that
 * st_task_step_begins() returned.  A pending exception stays set. */
void st_task_step_ended(PyObject* task, uint64_t now);

/* Adds the functions watch_tasks, look_at_tasks, creation_begins and
 * task_created to the module.  Returns -1 with an exception set on failure. */
int st_add_task_lives(PyObject* module);
