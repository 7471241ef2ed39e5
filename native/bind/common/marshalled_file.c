/* unmarshal(fd, start) returns the object that a file has, in marshal's format,
 * from an offset on.  The file is mapped: to read half a megabyte into new
 * memory takes as many page faults as it has pages.
 *
 * are_current(folder, modules, latest) tells whether the sources of a bundle's
 * modules have their sizes, and were written by a time. */
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bind/common/python.h"

#include <marshal.h> /* needs Python.h */

static PyObject* unmarshal(PyObject* Py_UNUSED(module), PyObject* args) {
  int fd;
  Py_ssize_t start;
  struct stat file;
  if (!PyArg_ParseTuple(args, "in", &fd, &start))
    return NULL;
  if (fstat(fd, &file))
    return PyErr_SetFromErrno(PyExc_OSError);
  Py_ssize_t size = (Py_ssize_t)file.st_size;
  if (start < 0 || start >= size)
    return PyErr_Format(PyExc_EOFError,
                        "a file of %zd bytes has no object at %zd", size,
                        start);
  char* bytes =
      mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
  if (bytes == MAP_FAILED)
    return PyErr_SetFromErrno(PyExc_OSError);
  PyObject* object =
      PyMarshal_ReadObjectFromString(bytes + start, size - start);
  munmap(bytes, (size_t)size);
  return object;
}

/* Returns 1 or 0, or -1 with an exception. */
static int is_current(int folder, PyObject* module, double latest) {
  PyObject *name, *is_package, *code;
  const char* file;
  long long size;
  struct stat source;
  if (!PyTuple_Check(module)) {
    PyErr_SetString(PyExc_TypeError, "a module must be a tuple");
    return -1;
  }
  if (!PyArg_ParseTuple(module, "OsOLO", &name, &file, &is_package, &size,
                        &code))
    return -1;
  return !fstatat(folder, file, &source, 0) && source.st_size == size &&
         (double)source.st_mtime <= latest;
}

static int all_current(int folder, PyObject* modules, double latest) {
  int current = 1;
  for (Py_ssize_t i = 0; current > 0 && i < PyTuple_GET_SIZE(modules); i++)
    current = is_current(folder, PyTuple_GET_ITEM(modules, i), latest);
  return current;
}

static PyObject* are_current(PyObject* Py_UNUSED(module), PyObject* args) {
  const char* path;
  PyObject* modules;
  double latest;
  if (!PyArg_ParseTuple(args, "sO!d", &path, &PyTuple_Type, &modules, &latest))
    return NULL;
  int folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0)
    return PyErr_SetFromErrno(PyExc_OSError);
  int current = all_current(folder, modules, latest);
  close(folder);
  return current < 0 ? NULL : PyBool_FromLong(current);
}

static PyMethodDef kFunctions[] = {
    {"unmarshal", unmarshal, METH_VARARGS, NULL},
    {"are_current", are_current, METH_VARARGS, NULL},
    {0},
};

ST_BIND_PART(marshalled_file) {
  return PyModule_AddFunctions(module, kFunctions);
}
