#include "bind/probes/code_ranges.h"

#include "bind/common/arguments.h"

int st_bind_code_ranges(PyObject* list, struct st_code_range* ranges) {
  PyObject* rows = PySequence_Fast(list, "ranges must be a sequence");
  if (!rows)
    return -1;
  int count = (int)Py_MIN(PySequence_Fast_GET_SIZE(rows), ST_MAP_MAX_RANGES);
  for (int i = 0; i < count; i++) {
    unsigned long long start, end, header;
    PyObject* row = PySequence_Fast_GET_ITEM(rows, i);
    if (!st_bind_is_row(row) ||
        !PyArg_ParseTuple(row, "KKK", &start, &end, &header)) {
      Py_DECREF(rows);
      return -1;
    }
    ranges[i] = (struct st_code_range){start, end, header};
  }
  Py_DECREF(rows);
  return count;
}
