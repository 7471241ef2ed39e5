#include "bind/track_event/process_track.h"

struct st_track st_process_track;
uint32_t st_process_generation = 1;

static uint8_t* process_descriptor;

static PyObject* set_process(PyObject* Py_UNUSED(module), PyObject* args) {
  unsigned long long uuid;
  const char* data;
  Py_ssize_t size;
  if (!PyArg_ParseTuple(args, "Ky#", &uuid, &data, &size))
    return NULL;
  uint8_t* copy = PyMem_RawMalloc((size_t)size + 1);
  if (!copy)
    return PyErr_NoMemory();
  memcpy(copy, data, (size_t)size);
  PyMem_RawFree(process_descriptor);
  process_descriptor = copy;
  st_process_track = (struct st_track){uuid, copy, (size_t)size, NULL};
  st_process_generation++;
  Py_RETURN_NONE;
}

static PyMethodDef kFunctions[] = {
    {"set_process", set_process, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL}};

ST_BIND_PART(process_track) {
  return PyModule_AddFunctions(module, kFunctions);
}
