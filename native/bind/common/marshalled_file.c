/* unmarshal(fd, start) returns the object that a file has, in marshal's format,
 * from an offset on.  The file is mapped: to read half a megabyte into new
 * memory takes as many page faults as it has pages. */
#include <sys/mman.h>
#include <sys/stat.h>

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

static PyMethodDef kFunctions[] = {{"unmarshal", unmarshal, METH_VARARGS, NULL},
                                   {0}};

ST_BIND_PART(marshalled_file) {
  return PyModule_AddFunctions(module, kFunctions);
}
