/* Pollable file descriptors as Python functions: inotify watches that report
 * opened files, and timers (timerfd).
 */
#include "bind/common/python.h"

#include <sys/inotify.h>
#include <sys/timerfd.h>

#include "core/high_fd.h"

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
  return PyLong_FromLong(watch);
}

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
  /* timerfd_settime would disarm the timer if the time were 0, hence the extra
   * nanosecond. */
  struct itimerspec when = {
      .it_value = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L + 1}};
  if (timerfd_settime(fd, 0, &when, NULL) < 0)
    return PyErr_SetFromErrno(PyExc_OSError);
  Py_RETURN_NONE;
}

static PyMethodDef kFunctions[] = {
    {"open_watch", open_watch, METH_NOARGS, NULL},
    {"watch_opens", watch_opens, METH_VARARGS, NULL},
    {"timer_fd", timer_fd, METH_NOARGS, NULL},
    {"set_timer_fd", set_timer_fd, METH_VARARGS, NULL},
    {0},
};

ST_BIND_PART(descriptors) {
  return PyModule_AddFunctions(module, kFunctions);
}
