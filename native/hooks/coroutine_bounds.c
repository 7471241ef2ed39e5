#include "hooks/coroutine_bounds.h"

#include <string.h>

#include "core/coroutine_times.h"
#include "hooks/code_records.h"
#include "hooks/python_layout.h"

/* A range of this length without a known begin or end is worth another event. */
#define LONG_RANGE_NS UINT64_C(1000000)

#define ARM_PAUSE_NS UINT64_C(20000000)

static struct st_coroutine_times times;

bool st_coroutine_bounds_start(void) {
  if (times.slots || st_coroutine_times_init(&times))
    return true;
  PyErr_NoMemory();
  return false;
}

void st_coroutine_bounds_stop(void) {
  st_coroutine_times_destroy(&times);
}

static bool is_generator(PyObject* code) {
  return ((PyCodeObject*)code)->co_flags & CO_ASYNC_GENERATOR;
}

void st_coroutine_step_begins(PyObject* code, uint64_t frame, uint64_t now,
                              bool resumes) {
  if (!resumes)
    st_coroutine_began(&times, frame, code, now);
  else if (is_generator(code))
    st_coroutine_continues(&times, frame, code, now);
}

/* Whether an asynchronous generator yields an item: CPython wraps items, which
 * tells them from what `await` yields. */
static bool is_item(PyObject* code, PyObject* yielded) {
  return is_generator(code) && strcmp(Py_TYPE(yielded)->tp_name,
                                      "async_generator_wrapped_value") == 0;
}

void st_coroutine_step_ends(PyObject* code, uint64_t frame, uint64_t now,
                            PyObject* yielded) {
  if (!yielded || is_item(code, yielded))
    st_coroutine_ended(&times, frame, code, now);
}

void st_coroutine_step_seen(PyObject* code, uint64_t frame, uint64_t first,
                            uint64_t unsure_ns, uint64_t last) {
  st_coroutine_seen(&times, frame, code, first, unsure_ns, last);
}

/* Requests the events of the next call, if this one's would have helped.  The
 * interpreter instruments the code anew then, which costs some time. */
static void arm(PyObject* code, uint64_t after, uint64_t before) {
  static uint64_t next;
  if (!ST_CALLS_ARE_REPORTED || before < next || before - after < LONG_RANGE_NS)
    return;
  next = before + ARM_PAUSE_NS;
  st_code_record_arm(st_code_record_find((uint64_t)(uintptr_t)code));
}

static PyObject* coroutine_begin(PyObject* Py_UNUSED(module), PyObject* args) {
  PyObject *coroutine, *code;
  unsigned long long after, before;
  if (!PyArg_ParseTuple(args, "OO!KK:coroutine_begin", &coroutine, &PyCode_Type,
                        &code, &after, &before))
    return NULL;
  uint64_t unsure, frame = st_python_coroutine_frame(coroutine);
  if (!frame)
    return Py_BuildValue("iii", 0, 0, 0);
  uint64_t time =
      st_coroutine_begin(&times, frame, code, after, before, &unsure);
  if (!time || unsure)
    arm(code, after, before);
  st_coroutine_watch(&times, frame, code);
  return Py_BuildValue("KKK", (unsigned long long)frame,
                       (unsigned long long)time, (unsigned long long)unsure);
}

static PyObject* coroutine_end(PyObject* Py_UNUSED(module), PyObject* args) {
  PyObject* code;
  unsigned long long frame, after, before;
  if (!PyArg_ParseTuple(args, "KO!KK:coroutine_end", &frame, &PyCode_Type,
                        &code, &after, &before))
    return NULL;
  uint64_t unsure;
  uint64_t time = st_coroutine_end(&times, frame, code, after, before, &unsure);
  if (!time || unsure)
    arm(code, after, before);
  return Py_BuildValue("KK", (unsigned long long)time,
                       (unsigned long long)unsure);
}

static PyMethodDef kFunctions[] = {
    {"coroutine_begin", coroutine_begin, METH_VARARGS, NULL},
    {"coroutine_end", coroutine_end, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL}};

int st_add_coroutine_bounds(PyObject* module) {
  return PyModule_AddFunctions(module, kFunctions);
}
