/* The first and the last work of a forked child that is not connected yet.
 *
 * Such a child connects to its recorder when it records an event, or after some
 * time (stretto.client.postponed).  Until then it has little to do, and that
 * little is done here, without Python code.  Each page that a child writes to
 * is copied, and each page of code that it runs is looked up again.  Both take
 * a microsecond or more, and a Python function that runs for the first time in
 * a process needs ten to twenty such pages.
 *
 *   parent   plan_child()      before each fork: what the child shall do
 *   child    begin_child()     the fork hook: postpones as planned
 *            end_process()     at exit: little, if it never connected
 */
#include <sys/syscall.h>
#include <unistd.h>

#include "bind/common/arguments.h"
#include "bind/common/delayed_call.h"
#include "bind/common/kept_objects.h"
#include "bind/common/untraced_calls.h"
#include "bind/track_event/category.h"
#include "core/last_thread.h"
#include "core/session_slots.h"

/* What the child of the next fork does. */
static struct {
  bool in_thread; /* Another thread than the main one forks. */
  bool postpones;
  int slot;            /* Its categories stay enabled. */
  long ms;             /* The longest time until `run` is called. */
  PyObject* run;       /* Does the postponed work. */
  PyObject* hooks;     /* A tuple of native functions, called afterwards. */
  PyObject* otherwise; /* Does everything, if the child does not postpone. */
} plan;

/* Whether postponed work is not done yet. */
static bool waiting;

static PyObject* plan_child(PyObject* Py_UNUSED(module), PyObject* args) {
  PyObject *slot, *run, *hooks, *otherwise;
  int64_t kept = 0;
  long ms;
  if (!PyArg_ParseTuple(args, "OlOO!O:plan_child", &slot, &ms, &run,
                        &PyTuple_Type, &hooks, &otherwise))
    return NULL;
  plan.postpones = slot != Py_None;
  if (plan.postpones &&
      !st_bind_integer(slot, "slot", 0, MAX_INSTANCES - 1, &kept))
    return NULL;
  st_last_thread_prepare();
  plan.in_thread = syscall(SYS_gettid) != getpid();
  plan.slot = (int)kept;
  plan.ms = ms;
  Py_XSETREF(plan.run, Py_NewRef(run));
  Py_XSETREF(plan.hooks, Py_NewRef(hooks));
  Py_XSETREF(plan.otherwise, Py_NewRef(otherwise));
  Py_RETURN_NONE;
}

static void call_hooks(void) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(plan.hooks); i++) {
    PyObject* hook = PyTuple_GetItem(plan.hooks, i);
    PyObject* result = PyObject_CallNoArgs(hook);
    if (!result)
      PyErr_WriteUnraisable(hook);
    Py_XDECREF(result);
  }
}

static PyObject* begin_child(PyObject* Py_UNUSED(module),
                             PyObject* Py_UNUSED(unused)) {
  if (!plan.otherwise)
    Py_RETURN_NONE;
  if (plan.in_thread)
    st_last_thread_watch();
  if (!plan.postpones || !st_categories_keep_only(plan.slot))
    return st_call_untraced(plan.otherwise, NULL, 0);
  waiting = true;
  st_call_after(plan.ms, plan.run);
  call_hooks();
  Py_RETURN_NONE;
}

static PyObject* is_postponed(PyObject* Py_UNUSED(module),
                              PyObject* Py_UNUSED(unused)) {
  return Py_NewRef(waiting ? Py_True : Py_False);
}

static PyObject* set_postponed(PyObject* Py_UNUSED(module), PyObject* value) {
  waiting = value == Py_True;
  Py_RETURN_NONE;
}

/* Ends a process that waits; returns false if it does not wait. */
static bool end_waiting(PyObject* silence, PyObject* modules) {
  /* Even without work the thread must not call into an interpreter that ends.
   * If its time has come, it completes the work first. */
  st_drop_call();
  if (!waiting)
    return false;
  waiting = false;
  Py_XDECREF(PyObject_CallNoArgs(silence));
  st_categories_disable();
  return st_hide_modules(modules);
}

static PyObject* end_process(PyObject* Py_UNUSED(module), PyObject* args) {
  PyObject *silence, *modules, *otherwise;
  if (!PyArg_ParseTuple(args, "OO!O:end_process", &silence, &PyFrozenSet_Type,
                        &modules, &otherwise))
    return NULL;
  if (end_waiting(silence, modules))
    Py_RETURN_NONE;
  if (PyErr_Occurred())
    return NULL;
  return st_call_untraced(otherwise, NULL, 0);
}

static PyMethodDef kFunctions[] = {
    {"plan_child", plan_child, METH_VARARGS, NULL},
    {"begin_child", begin_child, METH_NOARGS, NULL},
    {"is_postponed", is_postponed, METH_NOARGS, NULL},
    {"set_postponed", set_postponed, METH_O, NULL},
    {"end_process", end_process, METH_VARARGS, NULL},
    {0},
};

ST_BIND_PART(forked_child) {
  return PyModule_AddFunctions(module, kFunctions);
}
