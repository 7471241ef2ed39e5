/* keep(object) makes an object immortal: it is not freed, even when the
 * interpreter ends.  From CPython 3.12 on its references are not counted any
 * more, so its use in a forked child copies no page. */
#include "bind/common/python.h"

static PyObject* keep(PyObject* Py_UNUSED(module), PyObject* object) {
#if PY_VERSION_HEX < 0x030C0000 || defined(Py_GIL_DISABLED)
  Py_INCREF(object);
#else
  Py_SET_REFCNT(object, Py_REFCNT(Py_None));
#endif
  Py_RETURN_NONE;
}

static PyMethodDef kFunctions[] = {{"keep", keep, METH_O, NULL}, {0}};

ST_BIND_PART(kept_objects) {
  return PyModule_AddFunctions(module, kFunctions);
}
