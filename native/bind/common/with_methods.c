#include "bind/common/with_methods.h"

#if PY_VERSION_HEX >= 0x030E0000

int st_bind_with_methods(PyTypeObject* Py_UNUSED(type)) {
  return 0;
}

ST_BIND_PART(with_methods) {
  (void)module;
  return 0;
}

#else

#include <structmember.h>

enum { MAX_FREE = 64 };

/* The descriptor of a with method, in the dict of its type. */
typedef struct {
  PyObject_HEAD
  PyMethodDescrObject* ordinary; /* The ordinary method. */
} WithMethodObject;

typedef struct {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  WithMethodObject* method;
  PyObject* self;
} BoundObject;

/* The type of a function with the flag METH_FASTCALL. */
typedef PyObject* fast_function(PyObject* self, PyObject* const* args,
                                Py_ssize_t count);

static PyTypeObject *method_type, *bound_type;
static BoundObject* free_list[MAX_FREE];
static int free_count;

/* Returns the ordinary bound method.  Raises TypeError if the object has another
 * type. */
static PyObject* bind_ordinary(const WithMethodObject* m, PyObject* object) {
  PyObject* method = (PyObject*)m->ordinary;
  return Py_TYPE(method)->tp_descr_get(method, object,
                                       (PyObject*)Py_TYPE(object));
}

/* Calls a method in a way in which `with` does not call it. */
RARE static PyObject* call_ordinary(const BoundObject* b, PyObject* const* args,
                                    size_t count, PyObject* names) {
  PyObject* method = bind_ordinary(b->method, b->self);
  PyObject* result =
      method ? PyObject_Vectorcall(method, args, count, names) : NULL;
  Py_XDECREF(method);
  return result;
}

static PyObject* bound_call(PyObject* callable, PyObject* const* args,
                            size_t flags, PyObject* names) {
  const BoundObject* b = (const BoundObject*)callable;
  const PyMethodDef* d = b->method->ordinary->d_method;
  Py_ssize_t count = PyVectorcall_NARGS(flags);
  if (LIKELY(!names && d->ml_flags == METH_FASTCALL))
    return ((fast_function*)(void (*)(void))d->ml_meth)(b->self, args, count);
  if (LIKELY(!names && count == 0))
    return d->ml_meth(b->self, NULL);
  return call_ordinary(b, args, flags, names);
}

static BoundObject* bound_alloc(void) {
  if (!free_count)
    return (BoundObject*)bound_type->tp_alloc(bound_type, 0);
  BoundObject* b = free_list[--free_count];
  return (BoundObject*)PyObject_Init((PyObject*)b, bound_type);
}

static PyObject* method_get(PyObject* self, PyObject* object,
                            PyObject* Py_UNUSED(type)) {
  WithMethodObject* m = (WithMethodObject*)self;
  if (!object)
    return Py_NewRef(m->ordinary);
  if (UNLIKELY(!PyObject_TypeCheck(object, PyDescr_TYPE(m->ordinary))))
    return bind_ordinary(m, object);
  BoundObject* b = bound_alloc();
  if (!b)
    return NULL;
  b->vectorcall = bound_call;
  b->method = (WithMethodObject*)Py_NewRef(self);
  b->self = Py_NewRef(object);
  return (PyObject*)b;
}

static void method_dealloc(PyObject* self) {
  Py_DECREF(((WithMethodObject*)self)->ordinary);
  st_bind_free(self);
}

static void bound_dealloc(PyObject* self) {
  BoundObject* b = (BoundObject*)self;
  PyTypeObject* type = Py_TYPE(self);
  Py_DECREF(b->method);
  Py_DECREF(b->self);
  if (ST_FREE_LISTS && free_count < MAX_FREE)
    free_list[free_count++] = b;
  else
    type->tp_free(self);
  Py_DECREF(type);
}

static PyObject* bound_attribute(PyObject* self, PyObject* name) {
  const BoundObject* b = (BoundObject*)self;
  PyObject* method = bind_ordinary(b->method, b->self);
  PyObject* value = method ? PyObject_GetAttr(method, name) : NULL;
  Py_XDECREF(method);
  return value;
}

static PyType_Slot kMethodSlots[] = {
    {Py_tp_doc, "The descriptor of `__enter__` or `__exit__`."},
    {Py_tp_descr_get, method_get},
    {Py_tp_dealloc, method_dealloc},
    {0, NULL}};
static PyType_Spec kMethodSpec =
    ST_BIND_SPEC("WithMethod", WithMethodObject,
                 Py_TPFLAGS_DISALLOW_INSTANTIATION, kMethodSlots);

static PyMemberDef kBoundMembers[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(BoundObject, vectorcall),
     READONLY, NULL},
    {NULL, 0, 0, 0, NULL}};

static PyType_Slot kBoundSlots[] = {
    {Py_tp_doc, "A bound `__enter__` or `__exit__`."},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_getattro, bound_attribute},
    {Py_tp_dealloc, bound_dealloc},
    {Py_tp_members, kBoundMembers},
    {0, NULL}};
static PyType_Spec kBoundSpec =
    ST_BIND_SPEC("BoundWithMethod", BoundObject,
                 Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_HAVE_VECTORCALL,
                 kBoundSlots);

static int replace(PyTypeObject* type, const char* name) {
  PyObject* ordinary = PyObject_GetAttrString((PyObject*)type, name);
  if (!ordinary)
    return -1;
  WithMethodObject* m =
      (WithMethodObject*)method_type->tp_alloc(method_type, 0);
  if (!m) {
    Py_DECREF(ordinary);
    return -1;
  }
  m->ordinary = (PyMethodDescrObject*)ordinary;
  int done = PyObject_SetAttrString((PyObject*)type, name, (PyObject*)m);
  Py_DECREF(m);
  return done;
}

int st_bind_with_methods(PyTypeObject* type) {
  return replace(type, "__enter__") < 0 || replace(type, "__exit__") < 0 ? -1
                                                                         : 0;
}

ST_BIND_PART(with_methods) {
  method_type =
      (PyTypeObject*)PyType_FromModuleAndSpec(module, &kMethodSpec, NULL);
  bound_type =
      (PyTypeObject*)PyType_FromModuleAndSpec(module, &kBoundSpec, NULL);
  return method_type && bound_type ? 0 : -1;
}

#endif
