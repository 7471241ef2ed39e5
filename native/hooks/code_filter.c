/* Which code is traced: asks a Python function once per code object.
 *
 * The answers are kept in an open-addressed table by identity, with strong
 * references, so that an address used again never inherits an answer.  A
 * program may make code without end: a full table is emptied, and asks again.
 */
#include "hooks.h"

enum { FIRST_SIZE = 1024, MAX_SIZE = 1 << 17 };

struct answer {
  PyObject* code; /* strong; NULL: empty */
  bool accepted;
};

static struct answer* table;
static uint32_t size; /* a power of two, or 0 */
static uint32_t used; /* at most half of it */

static inline uint32_t first_place(PyObject* code) {
  return (uint32_t)(((uintptr_t)code >> 4) * 0x9E3779B97F4A7C15u >> 32);
}

static struct answer* place_of(PyObject* code) {
  uint32_t i = first_place(code) & (size - 1);
  while (table[i].code && table[i].code != code)
    i = (i + 1) & (size - 1);
  return &table[i];
}

void st_code_filter_clear(void) {
  struct answer* old = table;
  uint32_t old_size = size;
  table = NULL;
  size = used = 0;
  /* Last: dropping code may run Python, and that may trace. */
  for (uint32_t i = 0; i < old_size; i++)
    Py_XDECREF(old[i].code);
  PyMem_RawFree(old);
}

static bool grow(void) {
  if (size == MAX_SIZE)
    st_code_filter_clear();
  uint32_t old_size = size;
  struct answer* old = table;
  uint32_t new_size = old_size ? old_size * 2 : FIRST_SIZE;
  struct answer* grown = PyMem_RawCalloc(new_size, sizeof *grown);
  if (!grown)
    return false;
  table = grown;
  size = new_size;
  for (uint32_t i = 0; i < old_size; i++) {
    if (old[i].code)
      *place_of(old[i].code) = old[i];
  }
  PyMem_RawFree(old);
  return true;
}

static void remember(PyObject* code, bool accepted) {
  if (used * 2 >= size && !grow())
    return;
  struct answer* place = place_of(code);
  if (place->code)
    return; /* answered meanwhile, on another thread */
  *place = (struct answer){Py_NewRef(code), accepted};
  used++;
}

/* The name of the module whose code runs: a borrowed str, or None. */
static PyObject* running_module(void) {
  PyObject* globals = PyEval_GetGlobals();
  PyObject* name = globals ? PyDict_GetItemString(globals, "__name__") : NULL;
  return name && PyUnicode_Check(name) ? name : Py_None;
}

/* An answer that fails is a yes: rather too much in the trace than too
 * little. */
static bool ask(PyObject* code) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* module = Py_NewRef(running_module());
  PyObject* answer = PyObject_CallFunctionObjArgs(st_hooks.accepts, code,
                                                  module, (PyObject*)NULL);
  int accepted = answer ? PyObject_IsTrue(answer) : 1;
  Py_XDECREF(answer);
  Py_DECREF(module);
  PyErr_Clear();
  PyErr_Restore(type, value, traceback);
  return accepted != 0;
}

bool st_code_accepted(PyObject* code) {
  if (!st_hooks.accepts)
    return true;
  if (size) {
    const struct answer* known = place_of(code);
    if (ST_LIKELY(known->code != NULL))
      return known->accepted;
  }
  bool accepted = ask(code);
  if (st_hooks.running)
    remember(code, accepted);
  return accepted;
}
