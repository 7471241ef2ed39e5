#include "bind/common/types.h"

int st_bind_add_type(PyObject* module, PyType_Spec* spec) {
  PyObject* type = PyType_FromModuleAndSpec(module, spec, NULL);
  if (!type)
    return -1;
  int result = PyModule_AddType(module, (PyTypeObject*)type);
  Py_DECREF(type);
  return result;
}

bool st_bind_check(PyObject* object, destructor dealloc, const char* expected) {
  if (PyType_GetSlot(Py_TYPE(object), Py_tp_dealloc) == (void*)dealloc)
    return true;
  PyErr_Format(PyExc_TypeError, "expected a %s, not %R", expected,
               (PyObject*)Py_TYPE(object));
  return false;
}
