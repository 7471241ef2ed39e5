/* The back end of CPython 3.12 and later: sys.monitoring.
 *
 * Each event has its own callable, an object with only a vectorcall.  For code
 * that the filter excludes, the callables return DISABLE for each code
 * location, which then has no more cost.  PY_THROW and PY_UNWIND cannot be
 * disabled, so their callables use the filter each time.
 *
 * The tool id is 3 or 4, whichever is free: 0, 1, 2 and 5 belong to debugger,
 * coverage, profiler and optimizer, which the program may use itself.
 */
#include "hooks/backend.h"

#include "hooks/auto_detail.h"
#include "hooks/c_functions.h"
#include "hooks/call_stack.h"
#include "hooks/call_values.h"
#include "hooks/code_filter.h"
#include "hooks/coroutine_bounds.h"
#include "hooks/python_layout.h"
#include "hooks/set_profile.h"

#if PY_VERSION_HEX >= 0x030C0000

#include <structmember.h>

struct event {
  const char* name; /* The name that the event has in sys.monitoring.events. */
  vectorcallfunc callback;
};

static PyObject* disable; /* The constant sys.monitoring.DISABLE. */
static PyObject* monitoring;
static PyObject* restart; /* The bound method sys.monitoring.restart_events. */
static PyTypeObject* callback_type;
static int tool = -1;

#define CALLBACK(name)                                                    \
  static PyObject* name(PyObject* Py_UNUSED(self), PyObject* const* args, \
                        size_t Py_UNUSED(count), PyObject* Py_UNUSED(names))

static bool is_left_out(PyObject* code) {
  return ST_UNLIKELY(st_hooks.some_foreign) && st_call_is_inner_foreign(code);
}

static void note_begin(PyObject* code, bool resumes) {
  if (ST_UNLIKELY(st_code_suspends(code)))
    st_coroutine_step_begins(code, st_python_frame(PyThreadState_Get()).address,
                             st_hooks.api->now(), resumes);
}

static void note_end(PyObject* code, PyObject* yielded) {
  if (ST_UNLIKELY(st_code_suspends(code)))
    st_coroutine_step_ends(code, st_python_frame(PyThreadState_Get()).address,
                           st_hooks.api->now(), yielded);
}

static PyObject* enter(PyObject* code, bool resumes) {
  if (ST_UNLIKELY(!st_code_accepted(code)))
    return Py_NewRef(disable);
  if (is_left_out(code))
    Py_RETURN_NONE;
  note_begin(code, resumes);
  st_call_stack_enter_code(code);
  Py_RETURN_NONE;
}

CALLBACK(on_start) {
  return enter(args[0], false);
}

CALLBACK(on_resume) {
  return enter(args[0], true);
}

/* Handles an exception that is thrown into a generator.  This event cannot be
 * disabled. */
CALLBACK(on_throw) {
  if (st_code_accepted(args[0]) && !is_left_out(args[0]))
    st_call_stack_enter_code(args[0]);
  Py_RETURN_NONE;
}

static PyObject* leave(PyObject* code, PyObject* yielded) {
  if (is_left_out(code))
    Py_RETURN_NONE;
  if (ST_UNLIKELY(!st_call_stack_is_innermost(st_thread_stack, code)) &&
      !st_code_accepted(code))
    return Py_NewRef(disable);
  st_call_stack_leave(code);
  note_end(code, yielded);
  Py_RETURN_NONE;
}

CALLBACK(on_return) {
  return leave(args[0], NULL);
}

CALLBACK(on_yield) {
  return leave(args[0], args[2]);
}

CALLBACK(on_unwind) {
  if (is_left_out(args[0]))
    Py_RETURN_NONE;
  struct st_call_stack* s = st_thread_stack;
  if (st_call_stack_is_innermost(s, args[0]) ||
      (s && st_code_accepted(args[0])))
    st_call_stack_leave_slowly(s, args[0], (PyObject*)Py_TYPE(args[2]), NULL);
  note_end(args[0], NULL);
  Py_RETURN_NONE;
}

CALLBACK(on_enter_with_values) {
  if (!st_code_accepted(args[0]))
    return Py_NewRef(disable);
  if (is_left_out(args[0]))
    Py_RETURN_NONE;
  note_begin(args[0], false);
  /* This may run Python code of other threads, which may stop the tracer. */
  PyObject* arguments = st_call_arguments(args[0]);
  struct st_call_stack* s = st_hooks.running ? st_call_stack_get() : NULL;
  if (s)
    st_call_stack_enter_slowly(s, args[0], args[0], arguments);
  Py_XDECREF(arguments);
  Py_RETURN_NONE;
}

CALLBACK(on_leave_with_values) {
  if (!st_code_accepted(args[0]))
    return Py_NewRef(disable);
  if (is_left_out(args[0]))
    Py_RETURN_NONE;
  PyObject* result = st_call_result(args[0], args[2]);
  if (st_hooks.running && st_thread_stack)
    st_call_stack_leave_slowly(st_thread_stack, args[0], NULL, result);
  Py_XDECREF(result);
  note_end(args[0], NULL);
  Py_RETURN_NONE;
}

CALLBACK(on_auto_enter) {
  return Py_NewRef(st_auto_enter(args[0], false) ? Py_None : disable);
}

CALLBACK(on_auto_resume) {
  return Py_NewRef(st_auto_enter(args[0], true) ? Py_None : disable);
}

/* Handles an exception that is thrown into a generator, for auto detail.  This
 * event cannot be disabled. */
CALLBACK(on_auto_throw) {
  st_auto_enter(args[0], true);
  Py_RETURN_NONE;
}

CALLBACK(on_auto_leave) {
  return Py_NewRef(st_auto_leave(args[0], NULL, NULL) ? Py_None : disable);
}

CALLBACK(on_auto_yield) {
  return Py_NewRef(st_auto_leave(args[0], NULL, args[2]) ? Py_None : disable);
}

CALLBACK(on_auto_unwind) {
  st_auto_leave(args[0], (PyObject*)Py_TYPE(args[2]), NULL);
  Py_RETURN_NONE;
}

CALLBACK(on_call) {
  if (ST_UNLIKELY(!st_code_accepted(args[0])))
    return Py_NewRef(disable);
  st_call_stack_enter_c(args[2]);
  Py_RETURN_NONE;
}

CALLBACK(on_c_return) {
  if (st_is_c_function(args[2]) && st_code_accepted(args[0]))
    st_call_stack_leave(args[2]);
  Py_RETURN_NONE;
}

static const struct event kPythonEvents[] = {
    {"PY_START", on_start}, {"PY_RESUME", on_resume},
    {"PY_THROW", on_throw}, {"PY_RETURN", on_return},
    {"PY_YIELD", on_yield}, {"PY_UNWIND", on_unwind},
};
static const struct event kAutoEvents[] = {
    {"PY_START", on_auto_enter}, {"PY_RESUME", on_auto_resume},
    {"PY_THROW", on_auto_throw}, {"PY_RETURN", on_auto_leave},
    {"PY_YIELD", on_auto_yield}, {"PY_UNWIND", on_auto_unwind},
};
CALLBACK(on_auto_call) {
  return Py_NewRef(st_auto_c_call(args[0], args[1], args[2]) ? Py_None
                                                             : disable);
}

CALLBACK(on_auto_c_return) {
  if (st_is_c_function(args[2]))
    st_auto_c_return();
  Py_RETURN_NONE;
}

static const struct event kAutoCEvents[] = {
    {"CALL", on_auto_call},
    {"C_RETURN", on_auto_c_return},
    {"C_RAISE", on_auto_c_return},
};
/* If values of calls are recorded, these callbacks replace the callbacks in
 * kPythonEvents for the same events. */
static const struct event kValueEvents[] = {
    {"PY_START", on_enter_with_values},
    {"PY_RETURN", on_leave_with_values},
};
static const struct event kCEvents[] = {
    {"CALL", on_call},
    {"C_RETURN", on_c_return},
    {"C_RAISE", on_c_return},
};
enum {
  PYTHON_EVENTS = sizeof kPythonEvents / sizeof *kPythonEvents,
  VALUE_EVENTS = sizeof kValueEvents / sizeof *kValueEvents,
  C_EVENTS = sizeof kCEvents / sizeof *kCEvents,
};

struct callback {
  PyObject_HEAD
  vectorcallfunc call;
};

static void callback_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

static PyMemberDef kMembers[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(struct callback, call),
     READONLY, NULL},
    {NULL, 0, 0, 0, NULL}};
static PyType_Slot kSlots[] = {{Py_tp_dealloc, callback_dealloc},
                               {Py_tp_call, PyVectorcall_Call},
                               {Py_tp_members, kMembers},
                               {0, NULL}};
static PyType_Spec kSpec = {"stretto._pyhooks.Callback",
                            sizeof(struct callback), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL |
                                Py_TPFLAGS_DISALLOW_INSTANTIATION,
                            kSlots};

static PyObject* new_callback(vectorcallfunc call) {
  struct callback* c = PyObject_New(struct callback, callback_type);
  if (c)
    c->call = call;
  return (PyObject*)c;
}

int st_backend_add(PyObject* module) {
  callback_type = (PyTypeObject*)PyType_FromModuleAndSpec(module, &kSpec, NULL);
  return callback_type ? 0 : -1;
}

static bool find_monitoring(void) {
  if (!monitoring)
    monitoring = Py_XNewRef(PySys_GetObject("monitoring"));
  if (monitoring && !disable)
    disable = PyObject_GetAttrString(monitoring, "DISABLE");
  /* Looked up here, as the lookup would copy pages in the child of a fork. */
  if (disable && !restart)
    restart = PyObject_GetAttrString(monitoring, "restart_events");
  if (!disable && !PyErr_Occurred())
    PyErr_SetString(PyExc_RuntimeError, "this Python has no sys.monitoring");
  return disable && restart;
}

static bool take_tool(void) {
  for (int id = 3; id <= 4; id++) {
    PyObject* result =
        PyObject_CallMethod(monitoring, "use_tool_id", "is", id, "stretto");
    Py_XDECREF(result);
    if (result) {
      tool = id;
      return true;
    }
    if (!PyErr_ExceptionMatches(PyExc_ValueError))
      return false;
    PyErr_Clear();
  }
  PyErr_SetString(PyExc_RuntimeError,
                  "function calls can't be traced: other tools of this "
                  "program hold the sys.monitoring ids 3 and 4; switch one of "
                  "them off");
  return false;
}

static long event_bit(const char* name) {
  PyObject* events = PyObject_GetAttrString(monitoring, "events");
  PyObject* bit = events ? PyObject_GetAttrString(events, name) : NULL;
  long value = bit ? PyLong_AsLong(bit) : -1;
  Py_XDECREF(bit);
  Py_XDECREF(events);
  return value;
}

/* Registers a callback for each event.  Returns a mask with the bits of these
 * events.  Returns -1 with an exception set on failure. */
static long add_callbacks(const struct event* events, int count, bool active) {
  long bits = 0;
  for (int i = 0; i < count; i++) {
    long bit = event_bit(events[i].name);
    PyObject* callback =
        active ? new_callback(events[i].callback) : Py_NewRef(Py_None);
    PyObject* old = NULL;
    if (bit >= 0 && callback)
      old = PyObject_CallMethod(monitoring, "register_callback", "ilO", tool,
                                bit, callback);
    Py_XDECREF(callback);
    Py_XDECREF(old);
    if (!old)
      return -1;
    bits |= bit;
  }
  return bits;
}

static bool set_events(long bits) {
  PyObject* result =
      PyObject_CallMethod(monitoring, "set_events", "il", tool, bits);
  Py_XDECREF(result);
  return result != NULL;
}

/* Enables the code locations that an earlier filter has disabled.  Other tools
 * are not affected. */
static bool restart_events(void) {
  PyObject* result = PyObject_CallNoArgs(restart);
  Py_XDECREF(result);
  return result != NULL;
}

static bool is_only_ours(PyThreadState* thread) {
  return !st_python_profiles_calls(thread);
}

bool st_backend_start(void) {
  if (!find_monitoring() || !take_tool())
    return false;
  long bits = add_callbacks(st_hooks.auto_detail ? kAutoEvents : kPythonEvents,
                            PYTHON_EVENTS, true);
  if (bits >= 0 && (st_hooks.arguments_of || st_hooks.result_of) &&
      add_callbacks(kValueEvents, VALUE_EVENTS, true) < 0)
    bits = -1;
  if (bits >= 0 && (st_hooks.c_functions || st_hooks.auto_detail)) {
    long more = add_callbacks(st_hooks.auto_detail ? kAutoCEvents : kCEvents,
                              C_EVENTS, true);
    bits = more < 0 ? more : st_hooks.auto_detail ? bits : bits | more;
  }
  if (bits >= 0 && restart_events() && set_events(bits)) {
    st_set_profile_follow(is_only_ours, NULL);
    return true;
  }
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  st_backend_stop();
  PyErr_Restore(type, value, traceback);
  return false;
}

void st_backend_restart(void) {
  if (!restart_events())
    PyErr_Clear();
}

void st_backend_silence(void) {
  if (tool >= 0 && !set_events(0))
    PyErr_Clear();
}

static void set_calls(struct st_code_record* r, bool on) {
  PyObject* result =
      PyObject_CallMethod(monitoring, "set_local_events", "iOl", tool, r->code,
                          on ? event_bit("CALL") : 0L);
  PyErr_Clear();
  Py_XDECREF(result);
  r->reports_calls = on && result;
}

void st_backend_watch_calls(struct st_code_record* r) {
  r->may_block = false;
  if (!r->reports_calls && tool >= 0)
    set_calls(r, true);
}

void st_backend_stop(void) {
  if (tool < 0)
    return;
  st_set_profile_unfollow();
  set_events(0);
  PyErr_Clear();
  for (uint32_t i = 0; i < st_code_records_count(); i++) {
    struct st_code_record* r = st_code_record_at(i);
    if (r->reports_calls) {
      set_calls(r, false);
      r->may_block = true;
    }
  }
  add_callbacks(kPythonEvents, PYTHON_EVENTS, false);
  PyErr_Clear();
  add_callbacks(kCEvents, C_EVENTS, false);
  PyErr_Clear();
  PyObject* result = PyObject_CallMethod(monitoring, "free_tool_id", "i", tool);
  Py_XDECREF(result);
  PyErr_Clear();
  tool = -1;
}

/* Does nothing here, because the program cannot replace the callbacks of
 * sys.monitoring. */
void st_backend_check(void) {}

#endif
