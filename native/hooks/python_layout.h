/* Python layout: offsets in the structures of the CPython version that this
 * extension was built for, for the stack reader (probes/stack_reader.h).
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#include "probes/stack_reader.h"

extern const struct st_stack_layout st_python_layout;

/* Returns the address of the pointer to the main interpreter's first thread
 * state. */
uint64_t st_python_threads(void);

/* Returns the innermost frame of a thread: its address, and, for a Python call,
 * its code.  The thread must not be running bytecode, and the caller holds the
 * GIL. */
struct st_stack_frame st_python_frame(PyThreadState* thread);
/* Returns the frame that called this one; its address is 0 if there is none. */
struct st_stack_frame st_python_caller(struct st_stack_frame frame);

/* Makes the interpreter switch the events of a code object on again at its next
 * call, by a change of the code's event version.  At each call the interpreter
 * compares it with the version of the last change of events, and instruments
 * the code anew if they differ.  This is one store, which needs no GIL.  The
 * caller keeps the code alive. */
void st_python_rearm(PyObject* code);
