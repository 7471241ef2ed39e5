/* keep(object) makes an object immortal: it is not freed, even when the
 * interpreter ends. */
#include "bind/common/python.h"

static PyObject* keep(PyObject* Py_UNUSED(module), PyObject* object) {
  Py_INCREF(object);
  Py_RETURN_NONE;
}

static PyMethodDef kFunctions[] = {{"keep", keep, METH_O, NULL}, {0}};

ST_BIND_PART(kept_objects) {
  return PyModule_AddFunctions(module, kFunctions);
}
