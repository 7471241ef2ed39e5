#include "bind/common/dev_mode.h"

int st_bind_dev_mode(void) {
  PyObject* flags = Py_XNewRef(PySys_GetObject("flags"));
  PyObject* dev_mode = flags ? PyObject_GetAttrString(flags, "dev_mode") : NULL;
  int result = dev_mode ? dev_mode == Py_True : -1;
  Py_XDECREF(dev_mode);
  Py_XDECREF(flags);
  return result;
}
