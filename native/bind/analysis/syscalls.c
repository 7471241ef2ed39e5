/* syscall_names(machine): the names of a machine's system calls, by number. */
#include "analysis/syscalls.h"

#include "bind/common/types.h"

static PyObject* syscall_names(PyObject* Py_UNUSED(module), PyObject* machine) {
  Py_ssize_t size;
  const char* text = PyUnicode_AsUTF8AndSize(machine, &size);
  if (!text)
    return NULL;
  enum st_architecture architecture =
      st_architecture_of((const uint8_t*)text, (size_t)size);
  PyObject* list = PyList_New(0);
  for (uint32_t i = 0; list && i < st_call_count(architecture); i++) {
    PyObject* name = Py_BuildValue("z", st_call_name(architecture, i));
    if (!name || PyList_Append(list, name) < 0)
      Py_CLEAR(list);
    Py_XDECREF(name);
  }
  return list;
}

static PyMethodDef kFunctions[] = {
    {"syscall_names", syscall_names, METH_O, NULL},
    {0},
};

ST_BIND_PART(syscalls) {
  return PyModule_AddFunctions(module, kFunctions);
}
