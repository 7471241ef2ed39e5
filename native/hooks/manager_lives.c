#include "hooks/manager_lives.h"

#include "hooks/lives.h"
#include "hooks/tracer.h"

enum { MANAGERS_PER_SECOND = 20000 };

static struct st_lives managers;

static void entered(PyObject* manager) {
  st_lives_suspend(&managers, manager, st_hooks.api->now());
}

static void exited(PyObject* manager) {
  struct st_life* life = st_life_find(&managers.table, manager);
  if (life)
    st_lives_finish(&managers, life, manager, st_hooks.api->now());
}

static PyObject* step_entered(PyObject* manager, PyObject* Py_UNUSED(ref)) {
  entered(manager);
  Py_RETURN_NONE;
}

static PyObject* step_exited(PyObject* manager, PyObject* Py_UNUSED(ref)) {
  exited(manager);
  Py_RETURN_NONE;
}

static PyMethodDef kStepEntered = {"step_entered", step_entered, METH_O, NULL};
static PyMethodDef kStepExited = {"step_exited", step_exited, METH_O, NULL};

/* Calls `ended` when the coroutine that a method has returned is destroyed.
 * Returns false if the manager is not traced, or the method has returned no
 * coroutine. */
static bool watch_step(PyObject* manager, PyObject* result,
                       PyMethodDef* ended) {
  struct st_life* life = st_life_find(&managers.table, manager);
  if (!life || !PyCoro_CheckExact(result))
    return false;
  PyObject* function = PyCFunction_New(ended, manager);
  PyObject* reference = function ? PyWeakref_NewRef(result, function) : NULL;
  Py_XDECREF(function);
  PyErr_Clear();
  PyObject* old = life->step;
  life->step = reference;
  Py_XDECREF(old);
  return reference;
}

static PyObject* manager_enters(PyObject* Py_UNUSED(module),
                                PyObject* const* args, Py_ssize_t count) {
  uint64_t now = count ? st_lives_begin(&managers) : 0;
  struct st_life* life = now ? st_lives_add(&managers, args[0], now) : NULL;
  if (!life)
    Py_RETURN_NONE;
  life->looked = now;
  return Py_NewRef(args[0]);
}

static PyObject* manager_entered(PyObject* Py_UNUSED(module),
                                 PyObject* const* args, Py_ssize_t count) {
  if (count == 2 && !watch_step(args[0], args[1], &kStepEntered))
    entered(args[0]);
  Py_RETURN_NONE;
}

static PyObject* manager_exits(PyObject* Py_UNUSED(module),
                               PyObject* const* args, Py_ssize_t count) {
  struct st_life* life = count ? st_lives_of(&managers, args[0]) : NULL;
  if (!life)
    Py_RETURN_NONE;
  st_lives_resume(&managers, life, args[0], st_hooks.api->now());
  return Py_NewRef(args[0]);
}

static PyObject* manager_exited(PyObject* Py_UNUSED(module),
                                PyObject* const* args, Py_ssize_t count) {
  if (count == 2 && !watch_step(args[0], args[1], &kStepExited))
    exited(args[0]);
  Py_RETURN_NONE;
}

static PyObject* watch_managers(PyObject* Py_UNUSED(module),
                                PyObject* const* args, Py_ssize_t count) {
  if (count != 2)
    return PyErr_Format(PyExc_TypeError, "watch_managers(look, end)");
  if (args[0] == Py_None)
    st_lives_unwatch(&managers);
  else if (!st_lives_watch(&managers, args[0], args[1], MANAGERS_PER_SECOND,
                           false))
    return NULL;
  Py_RETURN_NONE;
}

static PyObject* look_at_managers(PyObject* Py_UNUSED(module),
                                  PyObject* Py_UNUSED(unused)) {
  return st_lives_look_at_all(&managers);
}

#define FASTCALL(function) \
  { #function, (PyCFunction)(void (*)(void))function, METH_FASTCALL, NULL }

static PyMethodDef kFunctions[] = {
    FASTCALL(watch_managers),
    {"look_at_managers", look_at_managers, METH_NOARGS, NULL},
    FASTCALL(manager_enters),
    FASTCALL(manager_entered),
    FASTCALL(manager_exits),
    FASTCALL(manager_exited),
    {NULL, NULL, 0, NULL}};

int st_add_manager_lives(PyObject* module) {
  return PyModule_AddFunctions(module, kFunctions);
}
