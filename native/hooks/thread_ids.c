#include "hooks/thread_ids.h"

struct st_thread_id st_thread_ids[ST_THREAD_IDS];

PyObject* st_thread_id_make(uint64_t id) {
  struct st_thread_id* slot = &st_thread_ids[id % ST_THREAD_IDS];
  PyObject* object = PyLong_FromUnsignedLongLong(id);
  if (!object) {
    PyErr_Clear();
    return Py_None;
  }
  slot->id = id;
  Py_XSETREF(slot->object, object);
  return object;
}

void st_thread_ids_clear(void) {
  for (int i = 0; i < ST_THREAD_IDS; i++) {
    st_thread_ids[i].id = 0;
    Py_CLEAR(st_thread_ids[i].object);
  }
}
