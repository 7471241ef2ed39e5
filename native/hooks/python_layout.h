/* Python layout: offsets in the structures of the CPython version that this
 * extension was built for, for the stack reader (probes/stack_reader.h).
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "probes/blocked_thread.h"
#include "probes/stack_reader.h"

/* Whether the interpreter reports calls to auto detail.  CPython 3.11 has no
 * events that can be switched off, so there only stack samples find calls. */
enum { ST_CALLS_ARE_REPORTED = PY_VERSION_HEX >= 0x030C0000 };

/* Where a frame has its code, and the bits of it that are no address. */
#if PY_VERSION_HEX >= 0x030E0000
enum { ST_FRAME_CODE_OFFSET = 0, ST_CODE_TAG = 3 };
#elif PY_VERSION_HEX >= 0x030C0000
enum { ST_FRAME_CODE_OFFSET = 0, ST_CODE_TAG = 0 };
#else
enum { ST_FRAME_CODE_OFFSET = 32, ST_CODE_TAG = 0 };
#endif

extern const struct st_stack_layout st_python_layout;

/* Returns the address of the pointer to the first thread state of the main
 * interpreter. */
uint64_t st_python_threads(void);

/* Returns where the GIL is. */
struct st_address_range st_python_gil(void);
/* Returns the condition by which threads wait for that GIL. */
const pthread_cond_t* st_python_gil_condition(void);
/* Returns the condition by which a thread that gives up that GIL waits until
 * another one has taken it. */
const pthread_cond_t* st_python_gil_switch_condition(void);
/* Whether a thread holds that GIL.  The caller holds the mutex of the condition:
 * as long as it does, nothing changes. */
bool st_python_gil_is_held(void);
/* Returns the state of the thread that took that GIL last, as a number: the
 * thread may end at any time. */
uint64_t st_python_gil_holder(void);

/* Returns the innermost frame of a thread: the frame's address and, if it is a
 * Python call, its code.  The thread must not be running bytecode.  The caller
 * holds the GIL. */
struct st_stack_frame st_python_frame(PyThreadState* thread);
/* Returns the code of the innermost frame of a thread, without a call; 0 if it has
 * none, and an unknown number if that frame is no Python call.  The caller holds
 * the GIL. */
static inline uint64_t st_python_innermost_code(const PyThreadState* thread) {
#if PY_VERSION_HEX >= 0x030D0000
  const void* frame = thread->current_frame;
#else
  const void* frame = thread->cframe ? thread->cframe->current_frame : NULL;
#endif
  uint64_t code = 0;
  if (frame)
    memcpy(&code, (const char*)frame + ST_FRAME_CODE_OFFSET, sizeof code);
  return code & ~(uint64_t)ST_CODE_TAG;
}
/* Returns the frame of the caller of this frame.  The address is 0 if there is
 * none. */
struct st_stack_frame st_python_caller(struct st_stack_frame frame);

/* Returns the offset, in bytes, of the instruction that a frame executes, from
 * the start of its code; negative before the first one.  The caller holds the
 * GIL. */
int st_python_instruction(struct st_stack_frame frame);
/* Returns the number of variables of a frame that is a Python call: arguments,
 * locals, cells.  The caller holds the GIL. */
int st_python_variables(struct st_stack_frame frame);
/* Returns the value of a variable, or NULL, and its name.  Borrowed
 * references. */
PyObject* st_python_variable(struct st_stack_frame frame, int i,
                             PyObject** name);
/* Returns the value of a global variable of a frame, or NULL.  A borrowed
 * reference. */
PyObject* st_python_global(struct st_stack_frame frame, PyObject* name);
/* Finds the item of a dict that has one, without a call of libpython.  Returns
 * false if it has more, or its layout is unusual.  Borrowed references. */
bool st_python_only_item(PyObject* dict, PyObject** key, PyObject** value);
/* Calls `each` with the objects that the garbage collector of the main
 * interpreter tracks.  The caller holds the GIL; `each` makes and frees no
 * object. */
void st_python_tracked(void (*each)(PyObject* object, void* self), void* self);
/* Whether the interpreter reports calls to profile functions.  It does so on all
 * threads if one has a profile function, and goes on if that thread ends with
 * it.  Always false on 3.11. */
bool st_python_profiles_calls(PyThreadState* thread);
/* Returns the calling thread's state if it holds the GIL, else NULL. */
PyThreadState* st_python_attached_thread(void);

/* Returns the address of the frame of a coroutine, or of a generator of any kind;
 * 0 if the object is neither.  After the return it may be another call's. */
uint64_t st_python_coroutine_frame(PyObject* coroutine);

/* Return the code object or dict at an address that a stack sample contains;
 * NULL if there is none, because it was freed since.  Borrowed references.  The
 * caller holds the GIL. */
PyObject* st_python_code_at(uint64_t address);
PyObject* st_python_dict_at(uint64_t address);

/* Makes the frame objects of all calls on all threads.  So a call can be told
 * from a later one at the same address: that one has no frame object, or another
 * one.  The caller holds the GIL. */
void st_python_mark_calls(void);

/* Makes the thread that holds the GIL release it soon, for a thread that is
 * about to wait for it. */
void st_python_request_gil(void);

enum { ST_GENERATIONS = 3 };

/* The thresholds of the main interpreter's garbage collector, and its count of new
 * objects, which the first one limits; NULL if threads may change it at any
 * time. */
void st_python_thresholds(int thresholds[ST_GENERATIONS]);
int* st_python_object_count(void);

/* On 3.12 a collection that is due runs on the next thread that runs Python code:
 * not on this one.  The program's next object makes it due again.  The caller holds
 * the GIL. */
void st_python_forget_due_collection(void);

/* Makes the interpreter report events of a code object again from its next call
 * on.  Each change of the events to report gives the interpreter a new version;
 * a code object has the version for which it was instrumented.  At each call
 * the interpreter compares the two.  This function changes the code's version,
 * so the interpreter instruments the code anew.  It needs no GIL, because it
 * makes only one store.  The caller keeps the code alive. */
void st_python_rearm(PyObject* code);
