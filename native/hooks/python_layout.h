/* Python layout: offsets in the structures of the CPython version that this
 * extension was built for, for the stack reader (probes/stack_reader.h).
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#include "probes/blocked_thread.h"
#include "probes/stack_reader.h"

extern const struct st_stack_layout st_python_layout;

/* Returns the address of the pointer to the first thread state of the main
 * interpreter. */
uint64_t st_python_threads(void);

/* Returns where the GIL is, on CPython 3.12 and later. */
struct st_address_range st_python_gil(void);

/* Returns the innermost frame of a thread: the frame's address and, if it is a
 * Python call, its code.  The thread must not be running bytecode.  The caller
 * holds the GIL. */
struct st_stack_frame st_python_frame(PyThreadState* thread);
/* Returns the frame of the caller of this frame.  The address is 0 if there is
 * none. */
struct st_stack_frame st_python_caller(struct st_stack_frame frame);

/* Makes the interpreter report events of a code object again from its next call
 * on.  Each change of the events to report gives the interpreter a new version;
 * a code object has the version for which it was instrumented.  At each call
 * the interpreter compares the two.  This function changes the code's version,
 * so the interpreter instruments the code anew.  It needs no GIL, because it
 * makes only one store.  The caller keeps the code alive. */
void st_python_rearm(PyObject* code);
