#include "hooks/object_names.h"

#include <string.h>

static PyObject *module_name, *name_name;

struct text {
  char* data;
  size_t size, room;
};

bool st_object_names_init(void) {
  if (!module_name)
    module_name = PyUnicode_InternFromString("__module__");
  if (!name_name)
    name_name = PyUnicode_InternFromString("__name__");
  return module_name && name_name;
}

static void append(struct text* t, const char* data, size_t size) {
  size_t rest = t->room - t->size;
  size = size < rest ? size : rest;
  memcpy(t->data + t->size, data, size);
  t->size += size;
}

static void append_string(struct text* t, PyObject* string) {
  Py_ssize_t size;
  const char* data = string && PyUnicode_Check(string)
                         ? PyUnicode_AsUTF8AndSize(string, &size)
                         : NULL;
  if (data)
    append(t, data, (size_t)size);
  else
    PyErr_Clear();
}

/* Returns an item of a dict; NULL if there is none.  Borrowed. */
static PyObject* item(PyObject* dict, PyObject* key) {
  PyObject* found = dict ? PyDict_GetItemWithError(dict, key) : NULL;
  if (!found)
    PyErr_Clear();
  return found;
}

static void append_type(struct text* t, PyTypeObject* type) {
  if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) {
    append(t, type->tp_name, strlen(type->tp_name));
    return;
  }
  PyObject* module = item(type->tp_dict, module_name);
  if (module && PyUnicode_Check(module) &&
      PyUnicode_CompareWithASCIIString(module, "builtins") != 0) {
    append_string(t, module);
    append(t, ".", 1);
  }
  append_string(t, ((PyHeapTypeObject*)type)->ht_qualname);
}

size_t st_object_type_name(PyObject* o, char* text, size_t room) {
  struct text t = {text, 0, room};
  if (PyType_Check(o)) {
    append_type(&t, (PyTypeObject*)o);
  } else if (PyCode_Check(o)) {
    append(&t, "frame ", 6);
    append_string(&t, ((PyCodeObject*)o)->co_qualname);
  } else {
    append(&t, "module ", 7);
    append_string(&t, item(PyModule_GetDict(o), name_name));
  }
  return t.size;
}

size_t st_object_field_name(PyObject* name, char* text, size_t room) {
  struct text t = {text, 0, room};
  append_string(&t, name);
  for (size_t i = 0; i < t.size; i++)
    if (text[i] == ' ')
      text[i] = '_';
  return t.size;
}
