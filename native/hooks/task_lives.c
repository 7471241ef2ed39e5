#include "hooks/task_lives.h"

#include "hooks/lives.h"
#include "hooks/tracer.h"

enum { TASKS_PER_SECOND = 5000 };

static struct st_lives tasks;
static PyObject* on_failed;

static bool is_done(PyObject* task) {
  static PyObject* name;
  if (!name)
    name = PyUnicode_InternFromString("done");
  PyObject* done = name ? PyObject_CallMethodNoArgs(task, name) : NULL;
  Py_XDECREF(done);
  st_drop_error();
  return done == Py_True;
}

/* Calls failed(exception) if an exception has ended the task.  The attribute is
 * read, because task.exception() would mark the exception as retrieved. */
static void report_failure(PyObject* task) {
  static PyObject* name;
  if (!name)
    name = PyUnicode_InternFromString("_exception");
  PyObject* error = name ? PyObject_GetAttr(task, name) : NULL;
  if (error && error != Py_None && on_failed) {
    PyObject* function = Py_NewRef(on_failed);
    Py_XDECREF(PyObject_CallOneArg(function, error));
    Py_DECREF(function);
  }
  Py_XDECREF(error);
  st_drop_error();
}

/* Ends the life of a task that is done. */
static void finish(struct st_life* life, PyObject* task, uint64_t now) {
  st_lives_finish(&tasks, life, task, now);
  report_failure(task);
}

/* Returns the object whose method the handle calls.  Returns NULL, perhaps with
 * an exception set, if the handle calls a function. */
static PyObject* self_of(PyObject* handle) {
  static PyObject *callback_name, *self_name;
  if (!callback_name)
    callback_name = PyUnicode_InternFromString("_callback");
  if (!self_name)
    self_name = PyUnicode_InternFromString("__self__");
  PyObject* callback = PyObject_GetAttr(handle, callback_name);
  PyObject* self = NULL;
  if (callback && PyCFunction_Check(callback))
    self = Py_XNewRef(PyCFunction_GET_SELF(callback));
  else if (callback && !PyFunction_Check(callback))
    self = PyObject_GetAttr(callback, self_name);
  Py_XDECREF(callback);
  return self;
}

PyObject* st_task_step_begins(PyObject* handle, uint64_t now) {
  PyObject* task = tasks.table.count ? self_of(handle) : NULL;
  struct st_life* life = task ? st_lives_of(&tasks, task) : NULL;
  PyErr_Clear();
  if (!life) {
    Py_XDECREF(task);
    return NULL;
  }
  st_lives_resume(&tasks, life, task, now);
  return task;
}

void st_task_step_ended(PyObject* task, uint64_t now) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  struct st_life* life = st_lives_suspend(&tasks, task, now);
  if (life && is_done(task) && (life = st_life_find(&tasks.table, task)))
    finish(life, task, now);
  Py_DECREF(task);
  PyErr_Restore(type, value, traceback);
}

static PyObject* creation_begins(PyObject* Py_UNUSED(module),
                                 PyObject* const* Py_UNUSED(args),
                                 Py_ssize_t Py_UNUSED(count),
                                 PyObject* Py_UNUSED(names)) {
  uint64_t now = st_lives_begin(&tasks);
  if (!now)
    Py_RETURN_NONE;
  return PyLong_FromUnsignedLongLong(now);
}

/* Sets the times of a task whose first step has already run: an eager task, or
 * a task that is older than the recording. */
static void note_earlier_step(struct st_life* life, PyObject* task) {
  PyObject* coroutine = PyObject_CallMethod(task, "get_coro", NULL);
  PyObject* suspended =
      coroutine ? PyObject_GetAttrString(coroutine, "cr_suspended") : NULL;
  if (suspended == Py_True) {
    life->looked = life->created;
    life->suspended = st_hooks.api->now();
  }
  Py_XDECREF(suspended);
  Py_XDECREF(coroutine);
  st_drop_error();
}

static PyObject* task_created(PyObject* Py_UNUSED(module),
                              PyObject* const* args, Py_ssize_t count) {
  if (count != 2)
    return PyErr_Format(PyExc_TypeError, "task_created(begin_ns, task)");
  uint64_t created = PyLong_AsUnsignedLongLong(args[0]);
  if (created == (uint64_t)-1 && PyErr_Occurred())
    return NULL;
  PyObject* task = args[1];
  struct st_life* life = NULL;
  if (task != Py_None)
    life = st_lives_add(&tasks, task, created);
  if (life && is_done(task) && (life = st_life_find(&tasks.table, task)))
    finish(life, task, st_hooks.api->now());
  else if (life && !life->suspended)
    note_earlier_step(life, task);
  Py_RETURN_NONE;
}

static PyObject* task_resumes(PyObject* Py_UNUSED(module), PyObject* task) {
  struct st_life* life = st_lives_of(&tasks, task);
  if (life)
    st_lives_resume(&tasks, life, task, st_hooks.api->now());
  Py_RETURN_NONE;
}

static PyObject* task_suspends(PyObject* Py_UNUSED(module), PyObject* task) {
  if (tasks.table.count)
    st_lives_suspend(&tasks, task, st_hooks.api->now());
  Py_RETURN_NONE;
}

static PyObject* task_exits(PyObject* Py_UNUSED(module), PyObject* task) {
  struct st_life* life = st_lives_of(&tasks, task);
  if (life)
    st_lives_finish(&tasks, life, task, st_hooks.api->now());
  Py_RETURN_NONE;
}

static PyObject* watch_tasks(PyObject* Py_UNUSED(module), PyObject* args) {
  PyObject *look, *end, *failed;
  int every;
  if (!PyArg_ParseTuple(args, "OOOp:watch_tasks", &look, &end, &failed, &every))
    return NULL;
  if (look == Py_None) {
    st_lives_unwatch(&tasks);
    Py_CLEAR(on_failed);
    Py_RETURN_NONE;
  }
  if (!st_lives_watch(&tasks, look, end, TASKS_PER_SECOND, every))
    return NULL;
  Py_XSETREF(on_failed, Py_NewRef(failed));
  Py_RETURN_NONE;
}

static PyObject* look_at_tasks(PyObject* Py_UNUSED(module),
                               PyObject* Py_UNUSED(unused)) {
  return st_lives_look_at_all(&tasks);
}

static PyMethodDef kFunctions[] = {
    {"watch_tasks", watch_tasks, METH_VARARGS, NULL},
    {"look_at_tasks", look_at_tasks, METH_NOARGS, NULL},
    {"creation_begins", (PyCFunction)(void (*)(void))creation_begins,
     METH_FASTCALL | METH_KEYWORDS, NULL},
    {"task_created", (PyCFunction)(void (*)(void))task_created, METH_FASTCALL,
     NULL},
    {"task_resumes", task_resumes, METH_O, NULL},
    {"task_suspends", task_suspends, METH_O, NULL},
    {"task_exits", task_exits, METH_O, NULL},
    {NULL, NULL, 0, NULL}};

int st_add_task_lives(PyObject* module) {
  return PyModule_AddFunctions(module, kFunctions);
}
