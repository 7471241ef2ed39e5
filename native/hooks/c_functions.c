#include "hooks/c_functions.h"

enum { SIZE = 4096, PROBES = 8 };

static struct {
  const PyMethodDef* definition;
  /* The definition's ml_name at the time when `name` was made. */
  const char* text;
  PyObject* name;
} table[SIZE];

bool st_is_c_function(PyObject* callable) {
  return PyCFunction_Check(callable) ||
         Py_IS_TYPE(callable, &PyMethodDescr_Type);
}

static const PyMethodDef* definition_of(PyObject* callable) {
  return PyCFunction_Check(callable)
             ? ((PyCFunctionObject*)callable)->m_ml
             : ((PyMethodDescrObject*)callable)->d_method;
}

static bool defines(PyTypeObject* type, const PyMethodDef* definition) {
  const PyMethodDef* m = type->tp_methods;
  while (m && m->ml_name && m != definition)
    m++;
  return m && m->ml_name;
}

/* Returns the name of the class that defines a method.  If no class does,
 * returns the name of the type of `self`. */
static const char* class_of(PyObject* self, const PyMethodDef* definition) {
  PyTypeObject* type = PyType_Check(self) ? (PyTypeObject*)self : Py_TYPE(self);
  PyObject* mro = type->tp_mro;
  for (Py_ssize_t i = 0; mro && i < PyTuple_GET_SIZE(mro); i++) {
    PyTypeObject* base = (PyTypeObject*)PyTuple_GET_ITEM(mro, i);
    if (defines(base, definition))
      return base->tp_name;
  }
  return type->tp_name;
}

static PyObject* make_name(PyObject* callable, const PyMethodDef* definition) {
  if (!PyCFunction_Check(callable)) {
    PyTypeObject* owner = ((PyDescrObject*)callable)->d_type;
    return PyUnicode_FromFormat("%s.%s", owner->tp_name, definition->ml_name);
  }
  PyCFunctionObject* function = (PyCFunctionObject*)callable;
  PyObject* self = function->m_self;
  if (self && !PyModule_Check(self))
    return PyUnicode_FromFormat("%s.%s", class_of(self, definition),
                                definition->ml_name);
  PyObject* module = function->m_module;
  if (module && PyUnicode_Check(module))
    return PyUnicode_FromFormat("%U.%s", module, definition->ml_name);
  return PyUnicode_FromString(definition->ml_name);
}

PyObject* st_c_function_name(PyObject* callable) {
  const PyMethodDef* definition = definition_of(callable);
  uint32_t first = (uint32_t)((uintptr_t)definition >> 4);
  uint32_t place = first % SIZE;
  for (uint32_t i = 0; i < PROBES; i++) {
    uint32_t here = (first + i) % SIZE;
    if (table[here].definition == definition &&
        table[here].text == definition->ml_name)
      return table[here].name;
    if (!table[here].definition) {
      place = here;
      break;
    }
  }
  PyObject* name = make_name(callable, definition);
  if (!name) {
    PyErr_Clear();
    return NULL;
  }
  PyUnicode_InternInPlace(&name);
  table[place].definition = definition;
  table[place].text = definition->ml_name;
  Py_XSETREF(table[place].name, name);
  return name;
}

void st_c_names_clear(void) {
  for (uint32_t i = 0; i < SIZE; i++) {
    table[i].definition = NULL;
    Py_CLEAR(table[i].name);
  }
}
