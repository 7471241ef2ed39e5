#include "hooks/object_sizes.h"

static PyObject* sizeof_name;

enum { COLLECTOR_HEAD = 16, ATTRIBUTES_HEAD = 16 };

#if PY_VERSION_HEX >= 0x030C0000
#define HAS_ATTRIBUTES_HEAD \
  (Py_TPFLAGS_MANAGED_DICT | Py_TPFLAGS_MANAGED_WEAKREF)
#else
#define HAS_ATTRIBUTES_HEAD Py_TPFLAGS_MANAGED_DICT
#endif

bool st_object_sizes_init(void) {
  if (!sizeof_name)
    sizeof_name = PyUnicode_InternFromString("__sizeof__");
  return sizeof_name != NULL;
}

static PyCFunction function_of(PyTypeObject* type) {
  PyObject* method = _PyType_Lookup(type, sizeof_name);
  if (!method || !Py_IS_TYPE(method, &PyMethodDescr_Type))
    return NULL;
  const PyMethodDef* def = ((PyMethodDescrObject*)method)->d_method;
  return (def->ml_flags & ~METH_COEXIST) == METH_NOARGS ? def->ml_meth : NULL;
}

struct st_object_size st_object_size_of(PyTypeObject* type) {
  struct st_object_size s = {.size_of = function_of(type)};
  if (!s.size_of)
    s.size_of = function_of(&PyBaseObject_Type);
  if (PyType_IS_GC(type))
    s.before += COLLECTOR_HEAD;
  if (PyType_HasFeature(type, HAS_ATTRIBUTES_HEAD))
    s.before += ATTRIBUTES_HEAD;
  return s;
}

/* From CPython 3.13 on, the sizes of types that are no objects of the heap have no
 * head, although the type `type` has. */
static bool has_head(PyObject* o) {
  return PY_VERSION_HEX < 0x030D0000 || PyObject_IS_GC(o) ||
         !PyType_IS_GC(Py_TYPE(o));
}

uint64_t st_object_size(const struct st_object_size* s, PyObject* o) {
  PyObject* size = s->size_of ? s->size_of(o, NULL) : NULL;
  Py_ssize_t bytes = size ? PyLong_AsSsize_t(size) : -1;
  Py_XDECREF(size);
  if (bytes < 0)
    PyErr_Clear();
  return (has_head(o) ? s->before : 0) +
         (uint64_t)(bytes < 0 ? Py_TYPE(o)->tp_basicsize : bytes);
}
