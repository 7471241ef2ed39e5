/* keep(object) makes an object immortal: it is not freed, even when the
 * interpreter ends.  From CPython 3.12 on its references are not counted any
 * more, so its use in a forked child copies no page.
 *
 * hide_modules(others) does so with modules, and sets their entries in
 * sys.modules to None.
 */
#include "bind/common/kept_objects.h"

#include <string.h>

static void keep_object(PyObject* object) {
#if PY_VERSION_HEX < 0x030C0000 || defined(Py_GIL_DISABLED)
  Py_INCREF(object);
#else
  if (Py_REFCNT(object) != Py_REFCNT(Py_None)) /* A store may copy a page. */
    Py_SET_REFCNT(object, Py_REFCNT(Py_None));
#endif
}

static PyObject* keep(PyObject* Py_UNUSED(module), PyObject* object) {
  keep_object(object);
  Py_RETURN_NONE;
}

static bool is_ours(PyObject* name) {
  static const char kPackage[] = "stretto";
  enum { SIZE = sizeof kPackage - 1 };
  const char* text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
  if (!text)
    PyErr_Clear();
  return text && strncmp(text, kPackage, SIZE) == 0 &&
         (text[SIZE] == '.' || !text[SIZE]);
}

bool st_hide_modules(PyObject* others) {
  PyObject *modules = PyImport_GetModuleDict(), *name, *value;
  Py_ssize_t pos = 0;
  int hidden = 0;
  Py_BEGIN_CRITICAL_SECTION(modules);
  while (hidden >= 0 && PyDict_Next(modules, &pos, &name, &value)) {
    hidden = is_ours(name) ? 1 : PySet_Contains(others, name);
    if (hidden > 0) {
      keep_object(value);
      hidden = PyDict_SetItem(modules, name, Py_None);
    }
  }
  Py_END_CRITICAL_SECTION();
  return hidden >= 0;
}

static PyObject* hide_modules(PyObject* Py_UNUSED(module), PyObject* others) {
  if (!PyFrozenSet_Check(others)) {
    PyErr_SetString(PyExc_TypeError, "hide_modules() needs a frozenset");
    return NULL;
  }
  if (!st_hide_modules(others))
    return NULL;
  Py_RETURN_NONE;
}

static PyMethodDef kFunctions[] = {{"keep", keep, METH_O, NULL},
                                   {"hide_modules", hide_modules, METH_O, NULL},
                                   {0}};

ST_BIND_PART(kept_objects) {
  return PyModule_AddFunctions(module, kFunctions);
}
