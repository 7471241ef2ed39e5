#include "bind/track_event/thread_name.h"

#include <string.h>

/* Returns a borrowed reference to the dict of all Thread objects by ident;
 * NULL if the module threading is not imported. */
static PyObject* all_threads(void) {
  PyObject* threading =
      PyDict_GetItemString(PyImport_GetModuleDict(), "threading");
  if (!threading || !PyModule_Check(threading))
    return NULL;
  PyObject* threads =
      PyDict_GetItemString(PyModule_GetDict(threading), "_active");
  return threads && PyDict_Check(threads) ? threads : NULL;
}

/* Returns a new reference to the attributes of the thread; NULL if it has none.
 */
static PyObject* attributes_of(PyObject* thread) {
  PyObject* attributes = PyObject_GenericGetDict(thread, NULL);
  if (!attributes)
    PyErr_Clear();
  return attributes;
}

static bool has_id(PyObject* attributes, uint64_t native_id) {
  PyObject* id = PyDict_GetItemString(attributes, "_native_id");
  return id && PyLong_CheckExact(id) &&
         PyLong_AsUnsignedLongLongMask(id) == native_id;
}

static size_t copy_name(PyObject* attributes, char* out) {
  PyObject* name = PyDict_GetItemString(attributes, "_name");
  Py_ssize_t size = 0;
  const char* text = name && PyUnicode_CheckExact(name)
                         ? PyUnicode_AsUTF8AndSize(name, &size)
                         : NULL;
  if (!text)
    PyErr_Clear();
  if (!text || size > ST_THREAD_NAME)
    return 0;
  memcpy(out, text, (size_t)size);
  return (size_t)size;
}

size_t st_thread_name(uint64_t native_id, char* name) {
  PyObject *type, *value, *traceback, *thread, *threads = all_threads();
  Py_ssize_t at = 0;
  size_t size = 0;
  bool found = false;
  PyErr_Fetch(&type, &value, &traceback);
  while (threads && !found && PyDict_Next(threads, &at, NULL, &thread)) {
    PyObject* attributes = attributes_of(thread);
    found = attributes && has_id(attributes, native_id);
    if (found)
      size = copy_name(attributes, name);
    Py_XDECREF(attributes);
  }
  PyErr_Restore(type, value, traceback);
  return size;
}
