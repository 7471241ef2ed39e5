#include "hooks/collections.h"

#include <string.h>

#include "hooks/auto_detail.h"
#include "hooks/cpu_time.h"
#include "hooks/sampler_totals.h"

/* The track of the thread on which the garbage collector runs, or NULL. */
static PyObject* track;
/* The CPU time of that thread when the collection has begun. */
static uint64_t began_us;

/* Calls category.method([name,] **fields). */
static void write_event(PyObject* category, const char* method,
                        const char* name, PyObject* fields) {
  PyObject* function = PyObject_GetAttrString(category, method);
  PyObject* args = name ? Py_BuildValue("(s)", name) : PyTuple_New(0);
  PyObject* result = NULL;
  if (function && args && fields)
    result = PyObject_Call(function, args, fields);
  Py_XDECREF(result);
  Py_XDECREF(args);
  Py_XDECREF(function);
}

/* The callback stays registered in a forked child, whose categories may be
 * disabled. */
static bool is_enabled(PyObject* category) {
  PyObject* enabled = PyObject_GetAttrString(category, "enabled");
  Py_XDECREF(enabled);
  return enabled == Py_True;
}

static void on_start(PyObject* category, PyObject* thread_track,
                     PyObject* info) {
  if (!is_enabled(category))
    return;
  Py_XSETREF(track, PyObject_CallNoArgs(thread_track));
  PyObject* generation = PyDict_GetItemString(info, "generation");
  if (!track || !generation)
    return;
  PyObject* fields =
      Py_BuildValue("{sOsO}", "track", track, "generation", generation);
  write_event(category, "begin", "garbage collection", fields);
  Py_XDECREF(fields);
  began_us = st_own_cpu_us();
}

static void on_stop(PyObject* category, PyObject* info) {
  PyObject* collected = PyDict_GetItemString(info, "collected");
  PyObject* uncollectable = PyDict_GetItemString(info, "uncollectable");
  if (!track || !collected || !uncollectable)
    /* There is no BEGIN: this collection began before the callback was
     * registered. */
    return;
  st_sampler_note_collection((st_own_cpu_us() - began_us) * 1000);
  PyObject* fields = Py_BuildValue("{sOsOsO}", "track", track, "collected",
                                   collected, "uncollectable", uncollectable);
  Py_CLEAR(track);
  write_event(category, "end", NULL, fields);
  Py_XDECREF(fields);
}

/* The callback of gc.callbacks, called as callback(phase, info).  `self` is the
 * tuple (category, thread_track). */
static PyObject* on_phase(PyObject* self, PyObject* args) {
  const char* phase;
  PyObject* info;
  if (!PyArg_ParseTuple(args, "sO!", &phase, &PyDict_Type, &info))
    return NULL;
  PyObject* category = PyTuple_GET_ITEM(self, 0);
  if (strcmp(phase, "start") == 0) {
    st_auto_collection_begins();
    on_start(category, PyTuple_GET_ITEM(self, 1), info);
  } else {
    on_stop(category, info);
    st_auto_collection_ends();
  }
  /* The dict could not be made: out of memory.  Events raise no exceptions. */
  PyErr_Clear();
  Py_RETURN_NONE;
}

static PyMethodDef kOnPhase = {"on_collection", on_phase, METH_VARARGS,
                               "Records runs of the garbage collector."};

PyObject* st_collections_callback(PyObject* Py_UNUSED(module), PyObject* args) {
  PyObject *category, *thread_track;
  if (!PyArg_ParseTuple(args, "OO", &category, &thread_track))
    return NULL;
  return PyCFunction_NewEx(&kOnPhase, args, NULL);
}
