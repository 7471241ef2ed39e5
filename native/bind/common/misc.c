/* Functions of the module that belong to no type. */
#include <sys/inotify.h>
#include <sys/timerfd.h>

#include "bind/common/bind.h"
#include "bind/common/handler_errors.h"
#include "bind/common/own_work.h"
#include "core/clock.h"
#include "core/high_fd.h"
#include "core/trace_scan.h"
#include "core/wire.h"

static PyObject* boottime_ns(PyObject* Py_UNUSED(module),
                             PyObject* Py_UNUSED(none)) {
  return PyLong_FromUnsignedLongLong(st_boottime_ns());
}

/* --- tokenize --- */

/* The position after the packet at p, or NULL if there is no whole one. */
static const uint8_t* skip_packet(const uint8_t* p, const uint8_t* end) {
  enum { PACKET_TAG = 0x0a }; /* field 1, delimited */
  if (p == end || *p++ != PACKET_TAG)
    return NULL;
  uint64_t size;
  p = st_get_varint(p, end, &size);
  return p && size <= (size_t)(end - p) ? p + size : NULL;
}

static PyObject* tokenize(PyObject* Py_UNUSED(module), PyObject* data) {
  Py_buffer trace;
  if (!st_bind_bytes(data, "data", &trace))
    return NULL;
  const uint8_t* parsed = trace.buf;
  const uint8_t* end = parsed + trace.len;
  Py_ssize_t packets = 0;
  Py_BEGIN_ALLOW_THREADS
  const uint8_t* next;
  while ((next = skip_packet(parsed, end))) {
    parsed = next;
    packets++;
  }
  Py_END_ALLOW_THREADS
  Py_ssize_t size = parsed - (const uint8_t*)trace.buf;
  PyBuffer_Release(&trace);
  return Py_BuildValue("nn", packets, size);
}

/* --- scan --- */

static void add_descriptor(void* list, const uint8_t* data, size_t size) {
  if (PyErr_Occurred())
    return;
  PyObject* descriptor =
      PyBytes_FromStringAndSize((const char*)data, (Py_ssize_t)size);
  if (descriptor)
    PyList_Append(list, descriptor);
  Py_XDECREF(descriptor);
}

static PyObject* scan_trace(PyObject* Py_UNUSED(module), PyObject* data) {
  Py_buffer trace;
  if (!st_bind_bytes(data, "data", &trace))
    return NULL;
  PyObject* descriptors = PyList_New(0);
  struct st_trace_scan scan = {.on_descriptor = add_descriptor,
                               .context = descriptors};
  size_t parsed = 0;
  if (descriptors)
    parsed = st_trace_scan(&scan, trace.buf, (size_t)trace.len);
  PyBuffer_Release(&trace);
  if (!descriptors || PyErr_Occurred()) {
    Py_XDECREF(descriptors);
    return NULL;
  }
  return Py_BuildValue("KKnN", (unsigned long long)scan.track_events,
                       (unsigned long long)scan.drops, (Py_ssize_t)parsed,
                       descriptors);
}

/* --- pending calls --- */

/* Errors have nowhere to go: the main thread is in the middle of anything. */
static int run_pending_call(void* callable) {
  PyObject* result = PyObject_CallNoArgs(callable);
  if (!result && !st_postpone_handler_error())
    PyErr_WriteUnraisable(callable);
  Py_XDECREF(result);
  Py_DECREF((PyObject*)callable);
  return 0;
}

static PyObject* add_pending_call(PyObject* Py_UNUSED(module),
                                  PyObject* callable) {
  if (!PyCallable_Check(callable)) {
    PyErr_SetString(PyExc_TypeError, "a pending call must be callable");
    return NULL;
  }
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    PyErr_SetString(PyExc_RuntimeError,
                    "only the main interpreter has pending calls; call the "
                    "function yourself");
    return NULL;
  }
  if (Py_AddPendingCall(run_pending_call, Py_NewRef(callable)) < 0) {
    Py_DECREF(callable);
    PyErr_SetString(PyExc_RuntimeError,
                    "too many calls are pending; try again later");
    return NULL;
  }
  Py_RETURN_NONE;
}

/* --- own work --- */

_Thread_local uint32_t st_own_work;

static PyObject* own_work(PyObject* Py_UNUSED(module), PyObject* const* args,
                          Py_ssize_t count) {
  if (count > 0)
    return st_call_own(args[0], args + 1, (size_t)count - 1);
  PyErr_SetString(PyExc_TypeError, "own_work() needs a function to call");
  return NULL;
}

/* --- opened files --- */

static PyObject* open_watch(PyObject* Py_UNUSED(module),
                            PyObject* Py_UNUSED(none)) {
  int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  return fd < 0 ? PyErr_SetFromErrno(PyExc_OSError) : PyLong_FromLong(fd);
}

static PyObject* watch_opens(PyObject* Py_UNUSED(module), PyObject* args) {
  int fd;
  PyObject* path;
  if (!PyArg_ParseTuple(args, "iO&:watch_opens", &fd, PyUnicode_FSConverter,
                        &path))
    return NULL;
  int watch = inotify_add_watch(fd, PyBytes_AsString(path), IN_OPEN);
  Py_DECREF(path);
  if (watch < 0)
    return PyErr_SetFromErrno(PyExc_OSError);
  Py_RETURN_NONE;
}

/* --- timers --- */

static PyObject* timer_fd(PyObject* Py_UNUSED(module),
                          PyObject* Py_UNUSED(none)) {
  int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  if (fd < 0)
    return PyErr_SetFromErrno(PyExc_OSError);
  return PyLong_FromLong(st_move_fd_up(fd));
}

static PyObject* set_timer_fd(PyObject* Py_UNUSED(module), PyObject* args) {
  enum { MAX_MS = 1 << 30 };
  int fd, ms;
  if (!PyArg_ParseTuple(args, "ii:set_timer_fd", &fd, &ms))
    return NULL;
  if (ms < 0 || ms > MAX_MS) {
    PyErr_Format(PyExc_ValueError, "ms must be from 0 to %d, not %d", MAX_MS,
                 ms);
    return NULL;
  }
  /* All zero would disarm it. */
  struct itimerspec when = {
      .it_value = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L + 1}};
  if (timerfd_settime(fd, 0, &when, NULL) < 0)
    return PyErr_SetFromErrno(PyExc_OSError);
  Py_RETURN_NONE;
}

static PyObject* read_tsc(PyObject* Py_UNUSED(module),
                          PyObject* Py_UNUSED(unused)) {
#ifdef __x86_64__
  return PyLong_FromUnsignedLongLong(__builtin_ia32_rdtsc());
#else
  Py_RETURN_NONE;
#endif
}

static PyMethodDef kFunctions[] = {
    {"read_tsc", read_tsc, METH_NOARGS,
     "The processor's time stamp counter, or None where there is none."},
    {"boottime_ns", boottime_ns, METH_NOARGS,
     "Now, in nanoseconds of CLOCK_BOOTTIME."},
    {"tokenize", tokenize, METH_O,
     "Count the packets of a trace; (packets, bytes parsed)."},
    {"scan_trace", scan_trace, METH_O,
     "Count the track events of a trace; (events, drops, bytes parsed, track "
     "descriptors)."},
    {"add_pending_call", add_pending_call, METH_O,
     "Have the main thread call something at its next safe moment."},
    {"own_work", (PyCFunction)(void (*)(void))own_work, METH_FASTCALL,
     "Call a function; function tracing leaves out the calls that it makes."},
    {"open_watch", open_watch, METH_NOARGS,
     "A descriptor that is readable when a watched file was opened."},
    {"watch_opens", watch_opens, METH_VARARGS,
     "Have an open_watch() watch one more file."},
    {"timer_fd", timer_fd, METH_NOARGS,
     "A timer as a descriptor: readable once its time has come."},
    {"set_timer_fd", set_timer_fd, METH_VARARGS,
     "Have a timer's time come in so many ms from now, once."},
    {0},
};

int st_bind_add_misc(PyObject* module) {
  return PyModule_AddFunctions(module, kFunctions);
}
