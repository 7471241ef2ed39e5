#include "hooks/task_steps.h"

#include <stdbool.h>

#include "hooks/attribute.h"
#include "hooks/auto_detail.h"
#include "hooks/task_lives.h"
#include "hooks/tracer.h"

static struct {
  PyObject* category; /* NULL while no steps are watched. */
  /* Functions: describe(task) -> (name, flow); types() -> the types of tasks;
   * awaiters(task) -> names of the tasks that wait for it, or None. */
  PyObject *describe, *find_types, *awaiters;
  PyObject* known; /* A dict: descriptions by weak references to tasks. */
  PyObject* types; /* What types() has returned; NULL before the first step. */
} steps;

/* Compares types only: PyObject_IsInstance() would run the property `__class__`
 * of an object that the program awaits. */
static bool is_task(PyObject* object) {
  if (!steps.types)
    steps.types = PyObject_CallNoArgs(steps.find_types);
  if (!steps.types || !PyTuple_Check(steps.types)) {
    st_drop_error();
    return false;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(steps.types); i++) {
    PyObject* type = PyTuple_GET_ITEM(steps.types, i);
    if (PyType_Check(type) &&
        PyType_IsSubtype(Py_TYPE(object), (PyTypeObject*)type))
      return true;
  }
  return false;
}

/* Returns a new reference to a task's description.  Returns NULL with an
 * exception set on failure. */
static PyObject* description_of(PyObject* task) {
  PyObject* reference = PyWeakref_NewRef(task, NULL);
  PyObject* found =
      reference ? PyDict_GetItemWithError(steps.known, reference) : NULL;
  Py_XDECREF(reference);
  if (found || PyErr_Occurred())
    return Py_XNewRef(found);
  found = PyObject_CallOneArg(steps.describe, task);
  if (!found || (PyTuple_Check(found) && PyTuple_GET_SIZE(found) == 2 &&
                 PyUnicode_Check(PyTuple_GET_ITEM(found, 0))))
    return found;
  Py_DECREF(found);
  PyErr_SetString(PyExc_TypeError, "describe() must return (name, flow)");
  return NULL;
}

static bool append_flow(PyObject** flows, PyObject* task) {
  PyObject* description = description_of(task);
  if (description && !*flows)
    *flows = PyList_New(0);
  bool ok = description && *flows &&
            PyList_Append(*flows, PyTuple_GET_ITEM(description, 1)) == 0;
  Py_XDECREF(description);
  return ok;
}

/* Returns a list of the flows of the tasks that were awaited: those among the
 * arguments of the handle's callback.  Returns NULL if there is none, perhaps
 * with an exception set. */
static PyObject* awaited_flows(PyObject* handle) {
  static struct st_attribute args_of = {.name = "_args"};
  PyObject *args = st_attribute_of(&args_of, handle), *flows = NULL;
  for (Py_ssize_t i = 0;
       args && PyTuple_Check(args) && i < PyTuple_GET_SIZE(args); i++) {
    PyObject* each = PyTuple_GET_ITEM(args, i);
    if (is_task(each) && !append_flow(&flows, each))
      break;
  }
  Py_XDECREF(args);
  return flows;
}

/* Adds an argument; `value` is a new reference, or NULL. */
static bool add(PyObject* arguments, const char* name, PyObject* value) {
  bool ok = value && PyDict_SetItemString(arguments, name, value) == 0;
  Py_XDECREF(value);
  return ok;
}

static bool add_awaiters(PyObject* arguments, PyObject* task) {
  if (steps.awaiters == Py_None)
    return true;
  PyObject* names = PyObject_CallOneArg(steps.awaiters, task);
  if (names != Py_None)
    return add(arguments, "awaited_by", names);
  Py_DECREF(names);
  return true;
}

/* Returns the arguments of a step's slice, a new dict.  Returns NULL with an
 * exception set on failure. */
static PyObject* arguments_of(PyObject* task) {
  static PyObject* get_name;
  if (!get_name)
    get_name = PyUnicode_InternFromString("get_name");
  PyObject* arguments = get_name ? PyDict_New() : NULL;
  if (arguments &&
      add(arguments, "task", PyObject_CallMethodNoArgs(task, get_name)) &&
      add_awaiters(arguments, task))
    return arguments;
  Py_XDECREF(arguments);
  return NULL;
}

static void write_end(PyObject* task, uint32_t mask, uint32_t since,
                      uint64_t end) {
  PyObject* error = st_task_is_done(task) ? st_task_failure(task) : NULL;
  if (error)
    st_hooks.api->end_raised(mask, since, end, (PyObject*)Py_TYPE(error), 0);
  else
    st_hooks.api->end(mask, since, end);
  Py_XDECREF(error);
}

static void write_step(PyObject* task, PyObject* handle, uint64_t begin,
                       uint64_t end) {
  PyObject* description = description_of(task);
  PyObject* arguments = description ? arguments_of(task) : NULL;
  PyObject* awaited = arguments ? awaited_flows(handle) : NULL;
  if (arguments && !PyErr_Occurred()) {
    struct st_past_event e = {.timestamp = begin,
                              .arguments = arguments,
                              .flow = PyTuple_GET_ITEM(description, 1),
                              .terminating_flow = awaited};
    uint32_t since =
        atomic_load_explicit(st_hooks.api->start_counter, memory_order_relaxed);
    uint32_t mask = st_hooks.api->begin_past(
        steps.category, PyTuple_GET_ITEM(description, 0), 0, &e);
    write_end(task, mask, since, end);
  }
  Py_XDECREF(awaited);
  Py_XDECREF(arguments);
  Py_XDECREF(description);
}

static PyObject* long_step_ended(PyObject* Py_UNUSED(module),
                                 PyObject* const* args, Py_ssize_t count) {
  if (count != 2)
    return PyErr_Format(PyExc_TypeError, "long_step_ended(begin_ns, handle)");
  uint64_t begin = PyLong_AsUnsignedLongLong(args[0]);
  if (begin == (uint64_t)-1 && PyErr_Occurred())
    return NULL;
  if (!steps.category || !st_hooks.api->enabled(steps.category))
    Py_RETURN_NONE;
  uint64_t end = st_auto_step_end(begin, st_hooks.api->now());
  PyObject* task = st_handle_owner(args[1]);
  if (end && task && is_task(task))
    write_step(task, args[1], begin, end);
  st_drop_error();
  Py_XDECREF(task);
  Py_RETURN_NONE;
}

static PyObject* watch_steps(PyObject* Py_UNUSED(module), PyObject* args) {
  PyObject *category, *describe, *known, *types, *awaiters;
  if (!PyArg_ParseTuple(args, "OOO!OO:watch_steps", &category, &describe,
                        &PyDict_Type, &known, &types, &awaiters))
    return NULL;
  bool on = category != Py_None;
  Py_XSETREF(steps.category, on ? Py_NewRef(category) : NULL);
  Py_XSETREF(steps.describe, on ? Py_NewRef(describe) : NULL);
  Py_XSETREF(steps.known, on ? Py_NewRef(known) : NULL);
  Py_XSETREF(steps.find_types, on ? Py_NewRef(types) : NULL);
  Py_XSETREF(steps.awaiters, on ? Py_NewRef(awaiters) : NULL);
  Py_CLEAR(steps.types);
  Py_RETURN_NONE;
}

static PyMethodDef kFunctions[] = {
    {"watch_steps", watch_steps, METH_VARARGS, NULL},
    {"long_step_ended", (PyCFunction)(void (*)(void))long_step_ended,
     METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL}};

int st_add_task_steps(PyObject* module) {
  return PyModule_AddFunctions(module, kFunctions);
}
