/* make_writer_class(): makes the generated subclasses of MessageWriter, with
 * one native method per field.
 *
 * The garbage collector tracks the instances of a class made in Python, and the
 * class may have subclasses.  Writers need neither, so both are switched off
 * after the class is made.  Its instances share the free list of
 * message_writer.c.
 *
 * CPython calls a method of one argument fastest when it is a plain C function;
 * but such a function receives only the object and the value, not the field.
 * So there are as many functions as a class may have fields, and function
 * number n uses entry n in the field table of the object's class:
 *
 *   packet.set_timestamp(5)  ->  method_03(packet, 5)
 *     class of packet        ->  its table  ->  field 3  ->  append(5)
 *
 * The class keeps its fields in a tuple, which the garbage collector can
 * traverse; the table points to the tuple's items.  The class is immutable and
 * has no subclasses, so a method always finds its own field.
 */
#include "bind/protozero/message_field.h"

enum { MAX_METHODS = 256 };

/* A writer class, followed by the table of its fields. */
struct writer_class {
  PyHeapTypeObject heap_type;
  PyObject** fields;
};

static PyTypeObject* metaclass;

static inline PyObject* call_field(PyObject* self, int place, PyObject* value) {
  const struct writer_class* type = (struct writer_class*)Py_TYPE(self);
  struct message_field* f = (struct message_field*)type->fields[place];
  return f->append(f, (struct message_writer*)self, value);
}

/* clang-format off */
#define ROW(X, row)                                                   \
  X(row##0) X(row##1) X(row##2) X(row##3) X(row##4) X(row##5)         \
  X(row##6) X(row##7) X(row##8) X(row##9) X(row##a) X(row##b)         \
  X(row##c) X(row##d) X(row##e) X(row##f)
#define ALL(X)                                                        \
  ROW(X, 0) ROW(X, 1) ROW(X, 2) ROW(X, 3) ROW(X, 4) ROW(X, 5)         \
  ROW(X, 6) ROW(X, 7) ROW(X, 8) ROW(X, 9) ROW(X, a) ROW(X, b)         \
  ROW(X, c) ROW(X, d) ROW(X, e) ROW(X, f)
#define METHOD(place)                                                 \
  static PyObject* method_##place(PyObject* self, PyObject* value) {  \
    return call_field(self, 0x##place, value);                        \
  }
#define NAME(place) method_##place,
/* clang-format on */

ALL(METHOD)

static const PyCFunction kMethods[] = {ALL(NAME)};
_Static_assert(sizeof kMethods / sizeof *kMethods == MAX_METHODS, "16 * 16");

static PyObject* make_fields(PyObject* rows) {
  Py_ssize_t count = PyList_GET_SIZE(rows);
  if (count > MAX_METHODS) {
    PyErr_Format(PyExc_ValueError,
                 "at most %d methods; others go into the namespace",
                 MAX_METHODS);
    return NULL;
  }
  PyObject* fields = PyTuple_New(count);
  for (Py_ssize_t i = 0; fields && i < count; i++) {
    PyObject* row = PyList_GetItemRef(rows, i);
    struct message_field* f = row ? message_field_new(row) : NULL;
    Py_XDECREF(row);
    if (f)
      PyTuple_SET_ITEM(fields, i, (PyObject*)f);
    else
      Py_CLEAR(fields);
  }
  return fields;
}

static bool add_method(PyTypeObject* type, PyObject* field, Py_ssize_t place) {
  struct message_field* f = (struct message_field*)field;
  /* This text belongs to the str `f->name`. */
  const char* name = PyUnicode_AsUTF8(f->name);
  if (!name)
    return false;
  bool opens = f->kind == VALUE_MESSAGE;
  f->method = (PyMethodDef){
      name, kMethods[place], opens ? METH_NOARGS : METH_O,
      opens ? "Open a message; returns its writer." : "Append a value."};
  PyObject* method = PyDescr_NewMethod(type, &f->method);
  bool done = method && PyObject_SetAttr((PyObject*)type, f->name, method) == 0;
  Py_XDECREF(method);
  return done;
}

static bool add_methods(PyTypeObject* type, PyObject* fields) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(fields); i++) {
    if (!add_method(type, PyTuple_GET_ITEM(fields, i), i))
      return false;
  }
  ((struct writer_class*)type)->fields = ((PyTupleObject*)fields)->ob_item;
  return PyObject_SetAttrString((PyObject*)type, "__fields__", fields) == 0;
}

/* Removes garbage collection and subclassing from a class made in Python.
 * Writers hold no references that could form a cycle, so they need no garbage
 * collection.  A subclass could make its objects larger; all objects of the
 * free list must have the same size. */
static void close_class(PyTypeObject* type) {
  type->tp_dealloc = message_writer_type->tp_dealloc;
  type->tp_traverse = NULL;
  type->tp_clear = NULL;
  type->tp_free = message_writer_type->tp_free;
  message_writer_finish_type(type);
  type->tp_flags &= ~(Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC);
  type->tp_flags |= Py_TPFLAGS_IMMUTABLETYPE;
  PyType_Modified(type);
}

/* Checks that instances of the class are as large as the objects of the free
 * list. */
static bool has_our_layout(const PyTypeObject* type) {
  if (type->tp_basicsize == message_writer_type->tp_basicsize &&
      !type->tp_dictoffset)
    return true;
  PyErr_SetString(PyExc_ValueError, "the namespace needs empty __slots__");
  return false;
}

static PyObject* make_writer_class(PyObject* Py_UNUSED(module),
                                   PyObject* args) {
  PyObject *name, *rows, *namespace;
  if (!PyArg_ParseTuple(args, "UO!O!", &name, &PyList_Type, &rows, &PyDict_Type,
                        &namespace))
    return NULL;
  PyObject* fields = make_fields(rows);
  PyTypeObject* type = fields ? (PyTypeObject*)PyObject_CallFunction(
                                    (PyObject*)metaclass, "O(O)O", name,
                                    message_writer_type, namespace)
                              : NULL;
  if (type && has_our_layout(type) && add_methods(type, fields))
    close_class(type);
  else
    Py_CLEAR(type);
  Py_XDECREF(fields);
  return (PyObject*)type;
}

static PyMethodDef kFunctions[] = {
    {"make_writer_class", make_writer_class, METH_VARARGS, NULL},
    {0},
};

static PyType_Slot kSlots[] = {
    {Py_tp_doc, "The metaclass of generated writers."},
    {0, NULL},
};

static PyType_Spec kSpec = ST_BIND_SPEC("WriterClass", struct writer_class,
                                        Py_TPFLAGS_IMMUTABLETYPE, kSlots);

ST_BIND_PART(message_writer_class) {
  metaclass =
      (PyTypeObject*)PyType_FromSpecWithBases(&kSpec, (PyObject*)&PyType_Type);
  if (!metaclass || PyModule_AddFunctions(module, kFunctions) < 0)
    return -1;
  return PyModule_AddIntConstant(module, "MAX_WRITER_METHODS", MAX_METHODS);
}
