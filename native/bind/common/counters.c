#include "bind/common/counters.h"

#include <string.h>

int st_bind_set_counter(PyObject* dict, const char* name, uint64_t value) {
  PyObject* number = PyLong_FromUnsignedLongLong(value);
  if (!number)
    return -1;
  int result = PyDict_SetItemString(dict, name, number);
  Py_DECREF(number);
  return result;
}

PyObject* st_bind_counters(const struct st_bind_counter* counters,
                           const void* values) {
  PyObject* dict = PyDict_New();
  for (; dict && counters->name; counters++) {
    uint64_t value;
    memcpy(&value, (const char*)values + counters->offset, sizeof value);
    if (st_bind_set_counter(dict, counters->name, value) < 0)
      Py_CLEAR(dict);
  }
  return dict;
}
