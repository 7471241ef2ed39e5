#include "bind/common/dev_mode.h"

int st_bind_dev_mode(void) {
  PyObject* flags = Py_XNewRef(PySys_GetObject("flags"));
  PyObject* dev_mode = flags ? PyObject_GetAttrString(flags, "dev_mode") : NULL;
  int result = dev_mode ? dev_mode == Py_True : -1;
  Py_XDECREF(dev_mode);
  Py_XDECREF(flags);
  return result;
}

PyObject* st_bind_set_flag(bool* flag, PyObject* value) {
  int given = PyObject_IsTrue(value);
  if (given < 0)
    return NULL;
  bool before = *flag;
  *flag = given;
  return PyBool_FromLong(before);
}
