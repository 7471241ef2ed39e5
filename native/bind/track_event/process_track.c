#include "bind/track_event/process_track.h"

#include <unistd.h>

#include "core/setters.h"

struct st_track st_process_track;
uint32_t st_process_generation = 1;

static uint8_t* process_descriptor;

size_t describe_thread(uint64_t native_id, uint8_t* descriptor,
                       uint64_t* uuid) {
  uint8_t thread[24];
  uint8_t* e = st_thread_descriptor_put_pid(thread, getpid());
  e = st_thread_descriptor_put_tid(e, (int64_t)native_id);
  *uuid = native_id ^ st_process_track.uuid;
  uint8_t* p = st_track_descriptor_put_uuid(descriptor, *uuid);
  p = st_track_descriptor_put_parent_uuid(p, st_process_track.uuid);
  p = st_track_descriptor_put_thread(p, thread, (size_t)(e - thread));
  return (size_t)(p - descriptor);
}

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
