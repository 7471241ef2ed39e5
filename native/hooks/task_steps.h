/* Task steps: writes the slices of the long steps of asyncio's tasks (auto
 * detail), with flows from step to step.
 *
 *   Handle._run of the event loop      around.c measures each step
 *        |  as long as the threshold
 *   long_step_ended(begin, handle)     the handle's task, what it awaited
 *        |
 *   stretto._native                    BEGIN and END on the thread's track
 *
 * What stays the same for a task is described once, by Python code, and is kept
 * in a dict of Python's: its coroutine's name and its flow.  The GIL guards all
 * of it.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Adds the functions for steps to the module.  Returns -1 with an exception set
 * on failure. */
int st_add_task_steps(PyObject* module);
