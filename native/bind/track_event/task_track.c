#include "bind/track_event/task_track.h"

#include "bind/common/handler_errors.h"
#include "bind/common/untraced_calls.h"
#include "bind/track_event/process_track.h"
#include "core/identity_cache.h"

/* The Python hook that returns the current task's track: a callable () -> Track
 * | None. */
static PyObject* current_track_hook;
/* The function asyncio.current_task.  It returns a Task or None, and may raise
 * RuntimeError. */
static PyObject* current_task;
/* The function that returns the current task of asyncio's Python class; NULL
 * before CPython 3.14.  From 3.14 on, asyncio.current_task finds only tasks of
 * the C class. */
static PyObject* current_python_task;

static void set_task_track(struct thread_state* t, PyObject* track) {
  bool is_track = track && Py_TYPE(track) == st_track_type;
  if (is_track) {
    Py_INCREF(track);
    track_resolve((TrackObject*)track);
  }
  TrackObject* old = t->task_track;
  t->task_track = is_track ? (TrackObject*)track : NULL;
  Py_XDECREF(old);
}

/* Calls the Python hook that returns the track of the current task. */
static void find_task_track(struct thread_state* t) {
  PyObject* track = st_call_untraced(current_track_hook, NULL, 0);
  st_drop_own_error();
  set_task_track(t, track);
  Py_XDECREF(track);
}

static void use_track_of(struct thread_state* t, PyObject* task) {
  struct task_track* known =
      &t->tasks[st_identity_hash(task) & (TASK_TRACKS - 1)];
  PyObject* reference = PyWeakref_NewRef(task, NULL);
  if (reference && known->task == reference) {
    set_task_track(t, (PyObject*)known->track);
    Py_DECREF(reference);
    return;
  }
  /* A task that does not support weak references is not cached. */
  PyErr_Clear();
  find_task_track(t);
  if (!reference || !t->task_track) {
    Py_XDECREF(reference);
    return;
  }
  Py_XSETREF(known->task, reference);
  Py_INCREF(t->task_track);
  Py_XSETREF(known->track, t->task_track);
}

/* Returns the running task, or None if no task runs.  Returns NULL if no event
 * loop runs in this thread. */
static PyObject* running_task(void) {
  PyObject* task = st_call_untraced(current_task, NULL, 0);
  if (task == Py_None && current_python_task) {
    Py_DECREF(task);
    task = st_call_untraced(current_python_task, NULL, 0);
  }
  if (!task)
    st_drop_own_error();
  return task;
}

/* Finds the track of the task that asyncio.current_task() returns.  Returns
 * false if that function is not set, or if no event loop of asyncio runs in
 * this thread. */
static bool use_track_of_current_task(struct thread_state* t) {
  PyObject* task = current_task ? running_task() : NULL;
  if (!task)
    return false;
  if (task != Py_None)
    use_track_of(t, task);
  else
    set_task_track(t, NULL);
  Py_DECREF(task);
  return true;
}

void thread_state_refresh_task(struct thread_state* t) {
  PyThreadState* python = python_state(t);
  t->context = python->context;
  t->context_version = python->context_ver;
  if (!current_track_hook)
    return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (!use_track_of_current_task(t))
    find_task_track(t);
  PyErr_Restore(type, value, traceback);
}

static PyObject* set_current_task(PyObject* Py_UNUSED(module),
                                  PyObject* const* args, Py_ssize_t count) {
  if (count != 2) {
    PyErr_SetString(PyExc_TypeError,
                    "set_current_task(function, python_function)");
    return NULL;
  }
  Py_XSETREF(current_task, Py_NewRef(args[0]));
  PyObject* python = args[1] == Py_None ? NULL : args[1];
  Py_XSETREF(current_python_task, Py_XNewRef(python));
  Py_RETURN_NONE;
}

static PyObject* set_hooks(PyObject* Py_UNUSED(module), PyObject* const* args,
                           Py_ssize_t count) {
  if (count != 4 || !PyList_CheckExact(args[3])) {
    PyErr_SetString(PyExc_TypeError,
                    "set_hooks() takes describe_process, describe_thread, "
                    "current_track and a list");
    return NULL;
  }
  st_process_track_set_hook(args[0]);
  thread_state_set_hook(args[1], args[3]);
  Py_XSETREF(current_track_hook, Py_NewRef(args[2]));
  Py_CLEAR(current_task);
  Py_CLEAR(current_python_task);
  Py_RETURN_NONE;
}

static PyMethodDef kFunctions[] = {
    {"set_current_task", (PyCFunction)(void (*)(void))set_current_task,
     METH_FASTCALL, NULL},
    {"set_hooks", (PyCFunction)(void (*)(void))set_hooks, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL}};

ST_BIND_PART(task_track) {
  return PyModule_AddFunctions(module, kFunctions);
}
