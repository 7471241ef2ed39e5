#include "bind/track_event/process_track.h"

#include <unistd.h>

#include "bind/common/handler_errors.h"
#include "bind/common/untraced_calls.h"
#include "core/setters.h"

/* The number of the field thread_name of ThreadDescriptor. */
enum { THREAD_NAME_FIELD = 5 };

struct st_track st_process_track;
uint32_t st_process_generation = 1;

static uint8_t* process_descriptor;
static PyObject* describe_process_hook;
/* Whether this process is the child of a fork, and the track is still that of
 * the parent. */
static bool is_of_parent;

void st_process_track_set_hook(PyObject* describe_process) {
  Py_XSETREF(describe_process_hook, Py_NewRef(describe_process));
}

void st_process_track_forget(void) {
  is_of_parent = true;
  st_process_generation++;
}

const struct st_track* st_process_track_get(void) {
  if (LIKELY(!is_of_parent))
    return &st_process_track;
  is_of_parent = false;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  Py_XDECREF(st_call_untraced(describe_process_hook, NULL, 0));
  st_drop_own_error();
  PyErr_Restore(type, value, traceback);
  return &st_process_track;
}

size_t describe_thread(uint64_t native_id, uint8_t* descriptor,
                       uint64_t* uuid) {
  uint8_t thread[32 + ST_THREAD_NAME];
  char name[ST_THREAD_NAME];
  size_t name_size = st_thread_name(native_id, name);
  uint8_t* e = st_thread_descriptor_put_pid(thread, getpid());
  e = st_thread_descriptor_put_tid(e, (int64_t)native_id);
  if (name_size)
    e = st_put_bytes_field(e, THREAD_NAME_FIELD, name, name_size);
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
  is_of_parent = false;
  st_process_generation++;
  Py_RETURN_NONE;
}

static PyObject* describe_process(PyObject* Py_UNUSED(module),
                                  PyObject* Py_UNUSED(unused)) {
  st_process_track_get();
  Py_RETURN_NONE;
}

static PyMethodDef kFunctions[] = {
    {"describe_process", describe_process, METH_NOARGS, NULL},
    {"set_process", set_process, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL}};

ST_BIND_PART(process_track) {
  return PyModule_AddFunctions(module, kFunctions);
}
