/* The Python type IpcThread: a native thread that polls a socket, drains a
 * SendQueue and calls back into Python when there is something to read.
 *
 * Running threads are listed in the module's state, so that they are stopped
 * before the interpreter ends.
 *
 * The thread has no Python thread state of its own; each callback gets a fresh
 * one, of the interpreter that made the object.  So no thread state leaks when
 * the thread ends, even by cancellation.
 *
 * The object may be deallocated while its thread waits for the GIL to call
 * back.  `dying` is then set, and the thread makes no callback.
 */
#include "bind/common/arguments.h"
#include "bind/common/module_state.h"
#include "bind/common/types.h"
#include "bind/data_path/send_queue.h"
#include "core/io_thread.h"

#include <errno.h>

#include "bind/common/thread_states.h"
#include "bind/common/untraced_calls.h"

struct st_ipc_thread_object {
  PyObject_HEAD
  struct st_io_thread* thread;
  PyInterpreterState* interpreter;
  PyObject* queue;
  PyObject* on_readable;
  bool dying;
  /* Whether the object is in the module's list of running threads. */
  bool is_listed;
  struct st_ipc_thread_object* next;
};

/* Calls the Python callback on_readable.  The GIL is held.  The last Py_DECREF
 * may destroy the IpcThread object. */
static bool call_python(struct st_ipc_thread_object* self) {
  if (self->dying || !self->on_readable)
    return false;
  Py_INCREF(self);
  PyObject* callback = self->on_readable;
  Py_INCREF(callback);
  PyObject* result = st_call_untraced(callback, NULL, 0);
  bool go_on = result && result != Py_False;
  if (!result)
    PyErr_WriteUnraisable(callback);
  Py_XDECREF(result);
  Py_DECREF(callback);
  Py_DECREF(self);
  return go_on;
}

static bool on_readable(void* arg) {
  struct st_ipc_thread_object* self = arg;
  PyThreadState* state = st_new_thread_state(self->interpreter);
  if (!state)
    return false;
  PyEval_RestoreThread(state);
  bool go_on = call_python(self);
  PyThreadState_Clear(state);
  PyThreadState_DeleteCurrent();
  return go_on;
}

/* Adds the object to the list of running IPC threads.  All threads in the list
 * are stopped before Python ends. */
static void list(struct st_ipc_thread_object* self) {
  if (self->is_listed)
    return;
  struct st_bind_state* state = st_bind_state(Py_TYPE(self));
  self->is_listed = true;
  self->next = state->running_threads;
  state->running_threads = self;
}

static void unlist(struct st_ipc_thread_object* self) {
  if (!self->is_listed)
    return;
  self->is_listed = false;
  struct st_bind_state* state = st_bind_state(Py_TYPE(self));
  if (!state) { /* The module is being cleared, so it has no state any more. */
    PyErr_Clear();
    return;
  }
  struct st_ipc_thread_object** link = &state->running_threads;
  while (*link && *link != self)
    link = &(*link)->next;
  if (*link)
    *link = self->next;
}

static int stop(struct st_ipc_thread_object* self) {
  int error;
  Py_BEGIN_ALLOW_THREADS
  error = st_io_thread_stop(self->thread);
  Py_END_ALLOW_THREADS
  if (!error)
    unlist(self);
  return error;
}

static PyObject* stop_all(PyObject* module, PyObject* Py_UNUSED(none)) {
  struct st_bind_state* state = PyModule_GetState(module);
  while (state->running_threads) {
    struct st_ipc_thread_object* first = state->running_threads;
    Py_INCREF(first);
    stop(first);
    unlist(first);
    Py_DECREF(first);
  }
  Py_RETURN_NONE;
}

static PyObject* thread_new(PyTypeObject* type, PyObject* args,
                            PyObject* kwargs) {
  ST_BIND_SIGNATURE(signature, 3, "IpcThread", "fd", "queue", "on_readable");
  PyObject* in[3];
  int fd;
  struct st_send_queue* queue;
  if (!st_bind_new_arguments(&signature, args, kwargs, in) ||
      !st_bind_fd(in[0], "fd", false, &fd))
    return NULL;
  queue = in[1] == Py_None ? NULL : st_bind_send_queue(in[1]);
  if (!queue && in[1] != Py_None)
    return NULL;
  if (!PyCallable_Check(in[2])) {
    PyErr_SetString(PyExc_TypeError, "on_readable must be callable");
    return NULL;
  }
  struct st_ipc_thread_object* self =
      (struct st_ipc_thread_object*)PyType_GenericAlloc(type, 0);
  if (!self)
    return NULL;
  self->interpreter = PyInterpreterState_Get();
  self->queue = Py_NewRef(in[1]);
  self->on_readable = Py_NewRef(in[2]);
  self->thread = st_io_thread_create(fd, queue, on_readable, self);
  if (!self->thread) {
    PyErr_SetFromErrno(PyExc_OSError);
    Py_DECREF(self);
    return NULL;
  }
  return (PyObject*)self;
}

static int thread_traverse(PyObject* object, visitproc visit, void* arg) {
  struct st_ipc_thread_object* self = (struct st_ipc_thread_object*)object;
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->queue);
  Py_VISIT(self->on_readable);
  return 0;
}

/* Keeps the reference to the queue, because the native thread may still use the
 * queue. */
static int thread_clear(PyObject* object) {
  Py_CLEAR(((struct st_ipc_thread_object*)object)->on_readable);
  return 0;
}

static void thread_dealloc(PyObject* object) {
  struct st_ipc_thread_object* self = (struct st_ipc_thread_object*)object;
  PyObject_GC_UnTrack(object);
  unlist(self);
  self->dying = true;
  if (self->thread) {
    Py_BEGIN_ALLOW_THREADS
    st_io_thread_destroy(self->thread);
    Py_END_ALLOW_THREADS
  }
  Py_CLEAR(self->on_readable);
  Py_CLEAR(self->queue);
  st_bind_free(object);
}

static PyObject* thread_start(PyObject* object, PyObject* Py_UNUSED(none)) {
  struct st_ipc_thread_object* self = (struct st_ipc_thread_object*)object;
  int error;
  Py_BEGIN_ALLOW_THREADS
  error = st_io_thread_start(self->thread);
  Py_END_ALLOW_THREADS
  if (error) {
    errno = error;
    return PyErr_SetFromErrno(PyExc_OSError);
  }
  list(self);
  Py_RETURN_NONE;
}

static PyObject* thread_stop(PyObject* object, PyObject* Py_UNUSED(none)) {
  if (stop((struct st_ipc_thread_object*)object) == EDEADLK) {
    PyErr_SetString(PyExc_RuntimeError,
                    "stop() can't be called from within on_readable: return "
                    "False there to stop reading");
    return NULL;
  }
  Py_RETURN_NONE;
}

static PyObject* thread_ask_to_stop(PyObject* object,
                                    PyObject* Py_UNUSED(none)) {
  st_io_thread_ask_to_stop(((struct st_ipc_thread_object*)object)->thread);
  Py_RETURN_NONE;
}

static PyObject* get_running(PyObject* object, void* Py_UNUSED(closure)) {
  struct st_ipc_thread_object* self = (struct st_ipc_thread_object*)object;
  return PyBool_FromLong(st_io_thread_running(self->thread));
}

static PyMethodDef kMethods[] = {
    {"start", thread_start, METH_NOARGS, NULL},
    {"stop", thread_stop, METH_NOARGS, NULL},
    {"ask_to_stop", thread_ask_to_stop, METH_NOARGS, NULL},
    {0},
};

static PyGetSetDef kProperties[] = {
    {"running", get_running, NULL, NULL, NULL},
    {0},
};

static PyType_Slot kSlots[] = {
    {Py_tp_new, thread_new},
    {Py_tp_dealloc, thread_dealloc},
    {Py_tp_traverse, thread_traverse},
    {Py_tp_clear, thread_clear},
    {Py_tp_methods, kMethods},
    {Py_tp_getset, kProperties},
    {Py_tp_doc, "A native thread that polls a descriptor."},
    {0, NULL},
};

static PyType_Spec kSpec =
    ST_BIND_SPEC("IpcThread", struct st_ipc_thread_object,
                 Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_HAVE_GC, kSlots);

static PyMethodDef kStopAll = {"stop_ipc_threads", stop_all, METH_NOARGS,
                               "Stop all IPC threads of this interpreter."};

/* Registers stop_all with atexit, at import.  atexit calls functions in reverse
 * order, so stop_all runs after the client's own clean-up. */
static int stop_at_exit(PyObject* module) {
  PyObject* function = PyCFunction_NewEx(&kStopAll, module, NULL);
  PyObject* atexit = function ? PyImport_ImportModule("atexit") : NULL;
  PyObject* result =
      atexit ? PyObject_CallMethod(atexit, "register", "O", function) : NULL;
  int status = result ? 0 : -1;
  Py_XDECREF(result);
  Py_XDECREF(atexit);
  Py_XDECREF(function);
  return status;
}

ST_BIND_PART(ipc_thread) {
  if (stop_at_exit(module) < 0)
    return -1;
  return st_bind_add_type(module, &kSpec);
}
