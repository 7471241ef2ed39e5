/* Task lives: traces tasks of asyncio and trio until they are done (lives.h).
 *
 * The steps of asyncio's tasks are calls of Handle._run (around.h).  Those of
 * trio's tasks are reported by an instrument of trio.
 *
 * Besides look() and end(), asyncio's tasks have the callback
 *
 *   failed(exception)   called when an exception has ended a task of any age
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

/* Returns a new reference to the object whose method a handle of asyncio calls.
 * Returns NULL, perhaps with an exception set, if the handle calls a function.
 */
PyObject* st_handle_owner(PyObject* handle);
bool st_task_is_done(PyObject* task);
/* Returns a new reference to the exception that has ended a task; NULL if there
 * is none.  Reads the attribute, because task.exception() would mark the
 * exception as retrieved. */
PyObject* st_task_failure(PyObject* task);

/* Handles the begin of a call of Handle._run.  Returns a new reference to the
 * task whose step this call is.  Returns NULL if the call is not a step of a
 * task, or if the task has no life.  Never sets an exception. */
PyObject* st_task_step_begins(PyObject* handle, uint64_t now);
/* Handles the end of a task's step.  Releases the reference that
 * st_task_step_begins() returned.  A pending exception stays set. */
void st_task_step_ended(PyObject* task, uint64_t now);
/* Searches the running event loop for tasks that asyncio.Task() has created with
 * eager_start=True since the last search.  Called before and after each step of a
 * task, and each other call of Handle._run.  A pending exception stays set. */
void st_task_search(uint64_t now);
void st_task_search_after_step(uint64_t now);

/* Adds the functions for tasks to the module.  Returns -1 with an exception set
 * on failure. */
int st_add_task_lives(PyObject* module);
