#include "bind/common/types.h"

int st_bind_add_type(PyObject* module, PyType_Spec* spec) {
  PyTypeObject* type;
  int result = st_bind_keep_type(module, spec, &type);
  Py_XDECREF((PyObject*)type);
  return result;
}

int st_bind_keep_type(PyObject* module, PyType_Spec* spec,
                      PyTypeObject** type) {
  *type = (PyTypeObject*)PyType_FromModuleAndSpec(module, spec, NULL);
  return *type ? PyModule_AddType(module, *type) : -1;
}

bool st_bind_check(PyObject* object, destructor dealloc, const char* expected) {
  if (PyType_GetSlot(Py_TYPE(object), Py_tp_dealloc) == (void*)dealloc)
    return true;
  PyErr_Format(PyExc_TypeError, "expected a %s, not %R", expected,
               (PyObject*)Py_TYPE(object));
  return false;
}
