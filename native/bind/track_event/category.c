#include "bind/track_event/category.h"

#include <string.h>
#include <structmember.h>

#include "bind/common/arguments.h"
#include "bind/common/types.h"
#include "bind/track_event/category_events.h"
#include "bind/track_event/category_object.h"
#include "bind/track_event/event_template.h"
#include "bind/track_event/traced_calls.h"
#include "core/session_slots.h"

PyTypeObject* st_category_type;

static PyObject* categories; /* All categories: a dict from name to Category. */
static PyObject* new_category_hook;
static uint32_t category_count;

/* The Python function behind @traced: (category, target) -> decorated
 * target. */
static PyObject* trace_function;

static PyObject* category_traced(PyObject* self, PyObject* target) {
  if (!trace_function)
    return Py_NewRef(target);
  return PyObject_CallFunctionObjArgs(trace_function, self, target, NULL);
}

static PyObject* set_traced(PyObject* Py_UNUSED(module), PyObject* function) {
  Py_XSETREF(trace_function, Py_NewRef(function));
  Py_RETURN_NONE;
}

static PyObject* category_set_slot(PyObject* self, PyObject* const* args,
                                   Py_ssize_t count) {
  CategoryObject* category = (CategoryObject*)self;
  int64_t slot = 0;
  if (count != 2) {
    PyErr_SetString(PyExc_TypeError, "_set_slot(slot, enabled)");
    return NULL;
  }
  if (!st_bind_integer(args[0], "slot", 0, MAX_INSTANCES - 1, &slot))
    return NULL;
  int enabled = PyObject_IsTrue(args[1]);
  if (enabled < 0)
    return NULL;
  if (enabled)
    category->enabled |= 1u << slot;
  else
    category->enabled &= ~(1u << slot);
  Py_RETURN_NONE;
}

static PyObject* category_get_enabled(PyObject* self, void* Py_UNUSED(unused)) {
  return PyBool_FromLong(((CategoryObject*)self)->enabled != 0);
}

static PyObject* check_name(PyObject* name) {
  if (!PyUnicode_Check(name)) {
    PyErr_Format(PyExc_TypeError, "a category's name must be a str, not %R",
                 (PyObject*)Py_TYPE(name));
    return NULL;
  }
  Py_ssize_t size;
  const char* text = PyUnicode_AsUTF8AndSize(name, &size);
  if (!text)
    return NULL;
  if (size == 0 || strpbrk(text, "\"* ")) {
    PyErr_Format(PyExc_ValueError,
                 "category name %R: use a name without quotes, asterisks and "
                 "spaces, like \"render\" or \"net.http\"",
                 name);
    return NULL;
  }
  PyObject* copy = PyUnicode_FromStringAndSize(text, size);
  if (copy)
    PyUnicode_InternInPlace(&copy);
  return copy;
}

static CategoryObject* make_category(PyTypeObject* type, PyObject* name) {
  if (category_count == MAX_CATEGORIES) {
    PyErr_SetString(PyExc_ValueError,
                    "too many categories (65535): make them once, at module "
                    "level, and put what varies into arguments");
    return NULL;
  }
  CategoryObject* c = (CategoryObject*)type->tp_alloc(type, 0);
  if (!c)
    return NULL;
  c->index = category_count++;
  c->name = Py_NewRef(name);
  c->description = PyUnicode_FromString("");
  c->tags = PyTuple_New(0);
  return c;
}

static bool describe_category(CategoryObject* c, PyObject* description,
                              PyObject* tags) {
  if (description && description != Py_None)
    Py_XSETREF(c->description, Py_NewRef(description));
  if (!tags)
    return true;
  PyObject* tuple = PySequence_Tuple(tags);
  if (!tuple)
    return false;
  bool ok = !PyUnicode_Check(tags) && PyTuple_GET_SIZE(tuple) <= 4;
  for (Py_ssize_t i = 0; ok && i < PyTuple_GET_SIZE(tuple); i++)
    ok = PyUnicode_Check(PyTuple_GET_ITEM(tuple, i));
  if (!ok) {
    Py_DECREF(tuple);
    PyErr_SetString(PyExc_ValueError, "tags must be a list of at most 4 str");
    return false;
  }
  Py_XSETREF(c->tags, tuple);
  return true;
}

static bool announce_category(CategoryObject* c) {
  if (!new_category_hook || new_category_hook == Py_None)
    return true;
  PyObject* result = PyObject_CallOneArg(new_category_hook, (PyObject*)c);
  Py_XDECREF(result);
  return result != NULL;
}

static PyObject* find_or_make(PyTypeObject* type, PyObject* name,
                              PyObject* description, PyObject* tags) {
  PyObject* found;
  bool is_new = PyDict_GetItemRef(categories, name, &found) == 0;
  CategoryObject* c =
      is_new ? make_category(type, name) : (CategoryObject*)found;
  if (!c)
    return NULL;
  if (!describe_category(c, description, tags) ||
      (is_new && (PyDict_SetItem(categories, c->name, (PyObject*)c) < 0)) ||
      ((is_new || tags) && !announce_category(c))) {
    Py_DECREF(c);
    return NULL;
  }
  return (PyObject*)c;
}

static PyObject* category_new(PyTypeObject* type, PyObject* args,
                              PyObject* kwargs) {
  static char* names[] = {"name", "description", "tags", NULL};
  PyObject *given, *description = NULL, *tags = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|UO:Category", names, &given,
                                   &description, &tags))
    return NULL;
  PyObject* name = check_name(given);
  if (!name)
    return NULL;
  PyObject* made = NULL;
  Py_BEGIN_CRITICAL_SECTION(categories);
  made = find_or_make(type, name, description, tags);
  Py_END_CRITICAL_SECTION();
  Py_DECREF(name);
  return made;
}

static void category_dealloc(PyObject* self) {
  CategoryObject* c = (CategoryObject*)self;
  if (c->weakrefs)
    PyObject_ClearWeakRefs(self);
  Py_XDECREF(c->name);
  Py_XDECREF(c->description);
  Py_XDECREF(c->tags);
  st_bind_free(self);
}

static PyObject* category_repr(PyObject* self) {
  return PyUnicode_FromFormat("stretto.Category(%R)",
                              ((CategoryObject*)self)->name);
}

static PyObject* category_reduce(PyObject* self, PyObject* Py_UNUSED(unused)) {
  CategoryObject* c = (CategoryObject*)self;
  return Py_BuildValue("O(OOO)", (PyObject*)Py_TYPE(self), c->name,
                       c->description, c->tags);
}

#define FAST_METHOD(f) \
  (PyCFunction)(void (*)(void))(f), METH_FASTCALL | METH_KEYWORDS

static PyMethodDef kMethods[] = {
    {"instant", FAST_METHOD(category_instant),
     "instant(name, /, *, track=None, flow=None, terminating_flow=None,\n"
     "        timestamp=None, args={}, **arguments)\n--\n\n"
     "Record a point in time."},
    {"log_message", FAST_METHOD(category_log_message),
     "log_message(name, message, priority, file, function, line, /, *,\n"
     "            track=None, timestamp=None, args={}, **arguments)\n--\n\n"
     "Record a log message; priorities are those of Android's log."},
    {"slice", FAST_METHOD(category_slice),
     "slice(name, /, *, track=None, flow=None, terminating_flow=None,\n"
     "      timestamp=None, args={}, **arguments)\n--\n\n"
     "A context manager that records the time spent in its block."},
    {"_slice_for_code", category_slice_for_code, METH_O,
     "_slice_for_code(code, /)\n--\n\nReturn a slice with the name and "
     "location of a code object."},
    {"counter", FAST_METHOD(category_counter),
     "counter(name, value, /, *, unit=None, track=None, timestamp=None)\n--\n\n"
     "Record the value of a quantity; `track` is the parent track."},
    {"begin", FAST_METHOD(category_begin),
     "begin(name, /, *, track=None, flow=None, terminating_flow=None,\n"
     "      timestamp=None, args={}, **arguments)\n--\n\n"
     "Begin a slice that end() on the same track ends."},
    {"end", FAST_METHOD(category_end),
     "end(*, track=None, flow=None, terminating_flow=None, timestamp=None,\n"
     "    args={}, **arguments)\n--\n\n"
     "End the innermost slice that begin() opened on the track."},
    {"template", FAST_METHOD(category_template),
     "template(name, /, *names, args={}, **constants)\n--\n\n"
     "Prepare events that differ in the values of `names` only."},
    {"traced", category_traced, METH_O,
     "traced(target, /)\n--\n\n"
     "Decorate a function, method or class: every call becomes a slice."},
    {"_trace_calls", category_trace_calls, METH_O,
     "_trace_calls(wrapper, /)\n--\n\n"
     "Make calls of a wrapper by `@traced` native, and return it."},
    {"_call_traced", (PyCFunction)(void (*)(void))category_call_traced,
     METH_FASTCALL,
     "_call_traced(function, args, kwargs, /)\n--\n\n"
     "Call a Python function, and record the call as a slice."},
    {"_empty", FAST_METHOD(category_empty),
     "Do nothing: the benchmarks' baseline of a disabled event."},
    {"_empty_slice", FAST_METHOD(category_empty_slice),
     "Return a context manager that does nothing: the benchmarks' baseline."},
    {"_set_slot", (PyCFunction)(void (*)(void))category_set_slot, METH_FASTCALL,
     "_set_slot(slot, enabled)"},
    {"__reduce__", category_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};

static PyMemberDef kMembers[] = {
    {"name", T_OBJECT, offsetof(CategoryObject, name), READONLY, NULL},
    {"description", T_OBJECT, offsetof(CategoryObject, description), READONLY,
     NULL},
    {"tags", T_OBJECT, offsetof(CategoryObject, tags), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(CategoryObject, weakrefs),
     READONLY, NULL},
    {NULL, 0, 0, 0, NULL}};

static PyGetSetDef kGetters[] = {
    {"enabled", category_get_enabled, NULL,
     "Whether any session records this category now.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot kSlots[] = {
    {Py_tp_doc,
     "Category(name, description='', tags=())\n--\n\n"
     "A named group of events that sessions switch on and off."},
    {Py_tp_new, category_new},
    {Py_tp_dealloc, category_dealloc},
    {Py_tp_repr, category_repr},
    {Py_tp_methods, kMethods},
    {Py_tp_members, kMembers},
    {Py_tp_getset, kGetters},
    {0, NULL}};

static PyType_Spec kSpec = ST_BIND_SPEC("Category", CategoryObject, 0, kSlots);

static PyObject* all_categories(PyObject* Py_UNUSED(module),
                                PyObject* Py_UNUSED(unused)) {
  return PyDict_Values(categories);
}

static PyObject* set_new_category_hook(PyObject* Py_UNUSED(module),
                                       PyObject* hook) {
  Py_XSETREF(new_category_hook, Py_NewRef(hook));
  Py_RETURN_NONE;
}

/* Enables a category only in the first slot if it was enabled in the slot of
 * the mask `kept`, else disables it.  Returns whether it was enabled before,
 * and is disabled now. */
static bool disable_category(CategoryObject* c, uint32_t kept) {
  uint32_t before = c->enabled, enabled = (before & kept) != 0;
  /* In the child of a fork, a store copies a page, so it is avoided. */
  if (before != enabled)
    c->enabled = enabled;
  return before && !enabled;
}

static PyObject* disable_categories(PyObject* Py_UNUSED(module),
                                    PyObject* slot) {
  int64_t kept = 0;
  if (slot != Py_None &&
      !st_bind_integer(slot, "kept", 0, MAX_INSTANCES - 1, &kept))
    return NULL;
  uint32_t mask = slot == Py_None ? 0 : 1u << kept;
  PyObject *name, *category, *disabled = PyList_New(0);
  Py_ssize_t pos = 0;
  Py_BEGIN_CRITICAL_SECTION(categories);
  while (disabled && PyDict_Next(categories, &pos, &name, &category)) {
    if (disable_category((CategoryObject*)category, mask) &&
        PyList_Append(disabled, category) < 0)
      Py_CLEAR(disabled);
  }
  Py_END_CRITICAL_SECTION();
  return disabled;
}

void st_categories_disable(void) {
  PyObject *name, *category;
  Py_ssize_t pos = 0;
  Py_BEGIN_CRITICAL_SECTION(categories);
  while (PyDict_Next(categories, &pos, &name, &category))
    disable_category((CategoryObject*)category, 0);
  Py_END_CRITICAL_SECTION();
}

bool st_categories_keep_only(int slot) {
  PyObject *name, *category;
  Py_ssize_t pos = 0;
  bool others = false;
  Py_BEGIN_CRITICAL_SECTION(categories);
  while (!others && PyDict_Next(categories, &pos, &name, &category)) {
    uint32_t enabled = ((CategoryObject*)category)->enabled;
    others = enabled && !(enabled & 1u << slot);
  }
  for (pos = 0; !others && PyDict_Next(categories, &pos, &name, &category);)
    disable_category((CategoryObject*)category, 1u << slot);
  Py_END_CRITICAL_SECTION();
  return !others;
}

static PyMethodDef kFunctions[] = {
    {"categories", all_categories, METH_NOARGS, "Return all categories."},
    {"set_new_category_hook", set_new_category_hook, METH_O,
     "Set hook(category), called for each new or newly tagged category."},
    {"set_traced", set_traced, METH_O,
     "Set the function that Category.traced calls."},
    {"disable_categories", disable_categories, METH_O,
     "disable_categories(kept)\n--\n\nDisable all categories, except those "
     "enabled in the slot `kept` (None: no slot), which are enabled in the "
     "first slot instead.  Return the disabled categories."},
    {NULL, NULL, 0, NULL}};

ST_BIND_PART(category) {
  categories = PyDict_New();
  if (!categories || st_bind_keep_type(module, &kSpec, &st_category_type) < 0)
    return -1;
  return PyModule_AddFunctions(module, kFunctions);
}
