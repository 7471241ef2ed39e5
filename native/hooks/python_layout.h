/* Where the running CPython keeps what the stack reader reads: the offsets of
 * the version that this extension was built for.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#include "probes/stack_reader.h"

extern const struct st_stack_layout st_python_layout;

/* Address of the pointer to the first thread state of the main interpreter. */
uint64_t st_python_threads(void);

/* The innermost frame of a thread that runs no bytecode just now: its address,
 * and, for a Python call, its code.  The caller holds the GIL. */
struct st_stack_frame st_python_frame(PyThreadState* thread);
/* The frame that called it; address 0: none. */
struct st_stack_frame st_python_caller(struct st_stack_frame frame);

/* Has the interpreter switch the events of a code object on again, at its next
 * call.  One store, which needs no GIL; the caller keeps the code alive.  The
 * interpreter compares this version at each call with that of the last change of
 * events, and instruments the code anew where they differ. */
void st_python_rearm(PyObject* code);
