#include "hooks/around.h"

#include "hooks/tracer.h"

struct around {
  PyObject_HEAD
  PyObject* function;
  PyObject* before;
  PyObject* after; /* The observer that runs after the function, or None. */
};

static PyObject* around_new(PyTypeObject* type, PyObject* args,
                            PyObject* kwargs) {
  static char* names[] = {"function", "before", "after", NULL};
  PyObject *function, *before, *after = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O:Around", names,
                                   &function, &before, &after))
    return NULL;
  struct around* a = (struct around*)type->tp_alloc(type, 0);
  if (!a)
    return NULL;
  a->function = Py_NewRef(function);
  a->before = Py_NewRef(before);
  a->after = Py_NewRef(after);
  return (PyObject*)a;
}

/* Calls an observer after the function.  Drops the observer's exception; a
 * pending exception of the program stays set. */
static void tell_after(PyObject* after, PyObject* token, PyObject* outcome) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* result = PyObject_CallFunctionObjArgs(
      after, token, outcome ? outcome : Py_None, (PyObject*)NULL);
  Py_XDECREF(result);
  st_drop_error();
  PyErr_Restore(type, value, traceback);
}

static PyObject* around_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  struct around* a = (struct around*)self;
  PyObject* token = PyObject_Call(a->before, args, kwargs);
  if (!token)
    st_drop_error();
  PyObject* result = PyObject_Call(a->function, args, kwargs);
  if (token && token != Py_None && a->after != Py_None)
    tell_after(a->after, token, result);
  Py_XDECREF(token);
  return result;
}

static PyObject* around_get(PyObject* self, PyObject* object,
                            PyObject* Py_UNUSED(type)) {
  if (!object || object == Py_None)
    return Py_NewRef(self);
  return PyMethod_New(self, object);
}

static PyObject* around_getattro(PyObject* self, PyObject* name) {
  struct around* a = (struct around*)self;
  if (PyUnicode_CompareWithASCIIString(name, "__wrapped__") == 0)
    return Py_NewRef(a->function);
  if (PyUnicode_CompareWithASCIIString(name, "__class__") == 0)
    return PyObject_GenericGetAttr(self, name);
  return PyObject_GetAttr(a->function, name);
}

static PyObject* around_repr(PyObject* self) {
  return PyObject_Repr(((struct around*)self)->function);
}

static int around_traverse(PyObject* self, visitproc visit, void* arg) {
  struct around* a = (struct around*)self;
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(a->function);
  Py_VISIT(a->before);
  Py_VISIT(a->after);
  return 0;
}

static int around_clear(PyObject* self) {
  struct around* a = (struct around*)self;
  Py_CLEAR(a->function);
  Py_CLEAR(a->before);
  Py_CLEAR(a->after);
  return 0;
}

static void around_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  around_clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

static PyType_Slot kSlots[] = {
    {Py_tp_doc,
     "Around(function, before, after=None)\n--\n\n"
     "Calls before(...), function(...), after(token, result)."},
    {Py_tp_new, around_new},
    {Py_tp_call, around_call},
    {Py_tp_descr_get, around_get},
    {Py_tp_getattro, around_getattro},
    {Py_tp_repr, around_repr},
    {Py_tp_traverse, around_traverse},
    {Py_tp_clear, around_clear},
    {Py_tp_dealloc, around_dealloc},
    {0, NULL}};

static PyType_Spec kSpec = {
    "stretto._pyhooks.Around", sizeof(struct around), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE, kSlots};

int st_add_around(PyObject* module) {
  PyObject* type = PyType_FromModuleAndSpec(module, &kSpec, NULL);
  if (!type)
    return -1;
  int result = PyModule_AddType(module, (PyTypeObject*)type);
  Py_DECREF(type);
  return result;
}
