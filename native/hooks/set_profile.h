/* sys.setprofile() while function tracing runs: the program's profile function
 * gets the events that it gets without the tracer.
 *
 *   sys.setprofile(f)   without the tracer   f's first event is the next call
 *                       with it              c_return of setprofile itself
 *
 * The tracer makes the interpreter report the call of sys.setprofile(), so the
 * interpreter also reports its return, to `f`, which was set meanwhile.  This
 * is so on 3.11 if the thread has our profile function, and later if calls of C
 * functions are reported.  Therefore sys.setprofile() has our own definition,
 * which hides this event.
 *
 * Limit: threading.setprofile_all_threads() is not followed.
 *
 * All functions need the GIL.
 */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

/* Replaces the definition of sys.setprofile() if that is the expected C
 * function.
 *   is_reported  returns whether only the tracer makes the interpreter report
 *                this thread's call of sys.setprofile().
 *   ours         the tracer's own profile function as an object, or NULL */
void st_set_profile_follow(bool (*is_reported)(PyThreadState* thread),
                           PyObject* ours);
/* Restores the definition. */
void st_set_profile_unfollow(void);
