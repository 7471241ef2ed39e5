/* The back end of CPython 3.11: the profile function of each thread.
 *
 * A profile function belongs to one thread.  At the start it is set on all
 * existing threads.  A thread that the program starts gets it when
 * `_thread.start_new_thread` returns in its parent, before its first call.
 * Threads started in other ways are found by a check after a certain number of
 * calls.
 *
 * A thread has one profile function, and the program may set its own
 * (cProfile).  The program's function stays in place, and st_hooks.counts
 * counts the thread.  After the program has removed its function, our function
 * is set again.  sys.getprofile() returns a callable that sets our function, so
 * a program that saves and restores the profile function restores ours.
 */
#include <patchlevel.h>

#if PY_VERSION_HEX < 0x030C0000

/* These headers define private structures of CPython.  With them, the code of a
 * frame is read without a function call and without reference counts. */
#define Py_BUILD_CORE 1
#include "hooks/backend.h"

#include "hooks/call_stack.h"
#include "hooks/code_filter.h"
#include "hooks/coroutine_bounds.h"
#include "hooks/set_profile.h"

#include <internal/pycore_frame.h>

enum { CALLS_BETWEEN_CHECKS = 1024 };

/* The object that sys.getprofile() returns while our hook is set. */
static PyObject* rehook;
static PyCFunction start_new_thread;
static uint32_t calls_until_check;

static inline PyObject* code_of(PyFrameObject* frame) {
  return (PyObject*)frame->f_frame->f_code;
}

static bool is_left_out(PyObject* code) {
  return ST_UNLIKELY(st_hooks.some_foreign) && st_call_is_inner_foreign(code);
}

static void note_begin(_PyInterpreterFrame* frame) {
  PyCodeObject* code = frame->f_code;
  if (st_code_suspends((PyObject*)code))
    st_coroutine_step_begins(
        (PyObject*)code, (uint64_t)(uintptr_t)frame, st_hooks.api->now(),
        _PyInterpreterFrame_LASTI(frame) > code->_co_firsttraceable);
}

static bool is_suspended(_PyInterpreterFrame* frame) {
  return frame->owner == FRAME_OWNED_BY_GENERATOR &&
         _PyFrame_GetGenerator(frame)->gi_frame_state == FRAME_SUSPENDED;
}

/* `result` is what the step returns or yields. */
static void note_end(_PyInterpreterFrame* frame, PyObject* result) {
  PyObject* code = (PyObject*)frame->f_code;
  if (st_code_suspends(code))
    st_coroutine_step_ends(code, (uint64_t)(uintptr_t)frame,
                           st_hooks.api->now(),
                           is_suspended(frame) ? result : NULL);
}

static void enter_frame(PyFrameObject* frame) {
  PyObject* code = code_of(frame);
  if (st_code_accepted(code) && !is_left_out(code)) {
    note_begin(frame->f_frame);
    st_call_stack_enter_code(code);
  }
  if (ST_UNLIKELY(--calls_until_check == 0))
    st_backend_check();
}

static void leave_frame(PyFrameObject* frame, PyObject* result) {
  PyObject* code = code_of(frame);
  if (is_left_out(code))
    return;
  if (st_call_stack_is_innermost(st_thread_stack, code) ||
      st_code_accepted(code)) {
    note_end(frame->f_frame, result);
    st_call_stack_leave(code);
  }
}

static bool calls_are_accepted(PyFrameObject* frame) {
  return st_hooks.c_functions && st_code_accepted(code_of(frame));
}

static bool starts_thread(PyObject* function) {
  return PyCFunction_Check(function) &&
         PyCFunction_GET_FUNCTION(function) == start_new_thread;
}

static int on_event(PyObject* Py_UNUSED(self), PyFrameObject* frame, int what,
                    PyObject* arg) {
  if (ST_UNLIKELY(!st_hooks.running))
    return 0;
  switch (what) {
    case PyTrace_CALL:
      enter_frame(frame);
      break;
    case PyTrace_RETURN:
      leave_frame(frame, arg);
      break;
    case PyTrace_C_CALL:
      if (calls_are_accepted(frame))
        st_call_stack_enter_c(arg);
      break;
    case PyTrace_C_RETURN:
    case PyTrace_C_EXCEPTION:
      if (calls_are_accepted(frame))
        st_call_stack_leave(arg);
      if (starts_thread(arg))
        st_backend_check();
      break;
  }
  return 0;
}

/* Sets a thread's profile function directly, because PyEval_SetProfile raises
 * an audit event: no Python code may run during the walk over the list of
 * threads. */
static void set_hook(PyThreadState* thread, Py_tracefunc hook) {
  PyObject* old = thread->c_profileobj;
  thread->c_profileobj = hook ? Py_NewRef(rehook) : NULL;
  thread->c_profilefunc = hook;
  bool tracing = thread->tracing == 0 && (hook || thread->c_tracefunc);
  thread->cframe->use_tracing = tracing ? 255 : 0;
  /* The dropped object is `rehook` or NULL, so no Python code runs. */
  Py_XDECREF(old);
}

static void count_replaced(PyThreadState* thread) {
  struct st_call_stack* s = st_call_stack_find(thread->id);
  if (!s) {
    st_hooks.counts.threads_occupied += thread->c_profilefunc != NULL;
  } else if (!s->replaced) {
    s->replaced = true;
    st_hooks.counts.threads_replaced++;
  }
}

/* Returns the first thread in the interpreter's list.  While the GIL is held,
 * no thread leaves the list, and new threads are added at its head. */
static PyThreadState* first_thread(void) {
  return PyInterpreterState_ThreadHead(PyInterpreterState_Main());
}

void st_backend_check(void) {
  calls_until_check = CALLS_BETWEEN_CHECKS;
  if (!st_hooks.running || st_hooks.auto_detail)
    return;
  st_hooks.counts.threads_occupied = 0;
  for (PyThreadState* t = first_thread(); t; t = PyThreadState_Next(t)) {
    if (t->c_profilefunc == on_event)
      continue;
    count_replaced(t);
    if (!t->c_profilefunc)
      set_hook(t, on_event);
  }
}

/* Our hook reports the return of sys.setprofile() to the program's hook. */
static bool has_our_hook(PyThreadState* thread) {
  return thread->c_profilefunc == on_event;
}

/* Sets our hook again.  Called when the program passes the object that it got
 * from sys.getprofile(). */
static PyObject* set_again(PyObject* Py_UNUSED(self), PyObject* const* args,
                           Py_ssize_t count) {
  bool running = st_hooks.running;
  PyEval_SetProfile(running ? on_event : NULL, running ? rehook : NULL);
  if (count == 3 && PyFrame_Check(args[0]) && PyUnicode_Check(args[1])) {
    if (PyUnicode_CompareWithASCIIString(args[1], "call") == 0)
      on_event(NULL, (PyFrameObject*)args[0], PyTrace_CALL, args[2]);
    else if (PyUnicode_CompareWithASCIIString(args[1], "return") == 0)
      on_event(NULL, (PyFrameObject*)args[0], PyTrace_RETURN, args[2]);
  }
  Py_RETURN_NONE;
}

static PyMethodDef kRehook = {
    "follow_calls", (PyCFunction)(void (*)(void))set_again, METH_FASTCALL,
    "The profile function of stretto's function tracing."};

int st_backend_add(PyObject* Py_UNUSED(module)) {
  Py_XSETREF(rehook, PyCFunction_NewEx(&kRehook, NULL, NULL));
  return rehook ? 0 : -1;
}

static bool find_start_new_thread(void) {
  PyObject* module = PyImport_ImportModule("_thread");
  PyObject* function =
      module ? PyObject_GetAttrString(module, "start_new_thread") : NULL;
  if (function && PyCFunction_Check(function))
    start_new_thread = PyCFunction_GET_FUNCTION(function);
  Py_XDECREF(function);
  Py_XDECREF(module);
  return function != NULL;
}

bool st_backend_start(void) {
  if (st_hooks.auto_detail)
    return true; /* Samples find the calls (merging_thread.h). */
  if (!find_start_new_thread())
    return false;
  st_set_profile_follow(has_our_hook, rehook);
  st_hooks.running = true;
  st_backend_check();
  return true;
}

void st_backend_stop(void) {
  st_set_profile_unfollow();
  for (PyThreadState* t = first_thread(); t; t = PyThreadState_Next(t)) {
    if (t->c_profilefunc == on_event)
      set_hook(t, NULL);
  }
}

void st_backend_restart(void) {} /* Events are never disabled. */

void st_backend_silence(void) {
  st_backend_stop();
}

void st_backend_watch_calls(struct st_code_record* record) {
  (void)record; /* Samples find the calls that wait. */
}

#endif
