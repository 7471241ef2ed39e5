#include "bind/track_event/event_template.h"

#include "bind/common/types.h"
#include "bind/track_event/annotations.h"
#include "bind/track_event/argument_errors.h"
#include "bind/track_event/emit.h"
#include "bind/track_event/emit_template.h"
#include "bind/track_event/event_options.h"
#include "bind/track_event/misuse.h"
#include "bind/track_event/slice.h"
#include "bind/track_event/thread_state.h"

PyTypeObject* st_event_template_type;
/* The str "within", the name of a keyword argument. */
static PyObject* within_name;

static bool forgive_keyword(struct event_request* r, PyObject* name) {
  return report_misuse(
      r, PART_NONE, PyExc_TypeError,
      "a template's event has no argument %R: name it when the "
      "template is made",
      name);
}

static bool take_within(struct event_request* r, PyObject* pair) {
  if (!PyTuple_CheckExact(pair) || PyTuple_GET_SIZE(pair) != 2 ||
      !PyContextVar_CheckExact(PyTuple_GET_ITEM(pair, 0)))
    return report_misuse(r, PART_NONE, PyExc_TypeError,
                         "within must be a ContextVar and its value, not %R",
                         pair);
  r->within = pair;
  return true;
}

static bool take_keyword(struct event_request* r, PyObject* name,
                         PyObject* value) {
  int option = find_event_option(name);
  if (option >= 0 && option != PART_ARGS)
    return take_event_option(r, (enum event_part)option, value);
  if (PyUnicode_Compare(name, within_name) == 0)
    return take_within(r, value);
  return forgive_keyword(r, name);
}

static bool take_keywords(struct event_request* r, PyObject* const* values,
                          PyObject* names) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
    if (!take_keyword(r, PyTuple_GET_ITEM(names, i), values[i]))
      return false;
  }
  return true;
}

/* Fills the request from a call's arguments.  Returns false with an exception
 * set if an argument is wrong and misuse raises. */
static bool parse(struct event_request* r, EventTemplateObject* template,
                  PyObject* const* args, Py_ssize_t count, PyObject* kwnames) {
  Py_ssize_t most = template->count;
  template_request(r, template, args, Py_MIN(count, most));
  if (UNLIKELY(count > most) &&
      !report_misuse(r, PART_POSITIONAL, PyExc_TypeError,
                     "a template with %zd values got %zd", most, count))
    return false;
  return !kwnames || take_keywords(r, args + count, kwnames);
}

static PyObject* template_instant(PyObject* self, PyObject* const* args,
                                  Py_ssize_t count, PyObject* kwnames) {
  EventTemplateObject* template = (EventTemplateObject*)self;
  uint32_t mask = category_mask(template->category);
  if (LIKELY(!mask))
    Py_RETURN_NONE;
  struct event_request r = {.type = ST_INSTANT};
  if (!parse(&r, template, args, count, kwnames))
    return NULL;
  emit_template(&r, mask);
  Py_RETURN_NONE;
}

static PyObject* prepared(EventTemplateObject* template,
                          enum st_event_type type, PyObject* const* args,
                          Py_ssize_t count, PyObject* kwnames) {
  if (LIKELY(!category_mask(template->category)))
    return Py_NewRef(st_empty_slice);
  struct event_request r = {.type = type};
  if (!parse(&r, template, args, count, kwnames))
    return NULL;
  return template_slice_new(&r);
}

static PyObject* template_slice(PyObject* self, PyObject* const* args,
                                Py_ssize_t count, PyObject* kwnames) {
  return prepared((EventTemplateObject*)self, ST_SLICE_BEGIN, args, count,
                  kwnames);
}

static PyObject* template_instant_at(PyObject* self, PyObject* const* args,
                                     Py_ssize_t count, PyObject* kwnames) {
  return prepared((EventTemplateObject*)self, ST_INSTANT, args, count, kwnames);
}

/* Returns the value with which a constant is written: a plain value as it is,
 * any other converted to str.  Runs Python code. */
static PyObject* constant_of(PyObject* value) {
  if (argument_is_plain(value))
    return Py_NewRef(value);
  PyObject* text = PyObject_Str(value);
  if (!text) {
    swallow_error();
    return PyUnicode_FromString("?");
  }
  PyObject* exact = PyUnicode_FromObject(text);
  Py_DECREF(text);
  return exact;
}

static bool add_constant(EventTemplateObject* t, PyObject* name,
                         PyObject* value) {
  if (!PyUnicode_CheckExact(name)) {
    PyErr_Format(PyExc_TypeError, "an argument's name must be a str, not %R",
                 (PyObject*)Py_TYPE(name));
    return false;
  }
  PyObject* constant = constant_of(value);
  bool ok = constant && PyDict_SetItem(t->constants, name, constant) == 0;
  Py_XDECREF(constant);
  return ok;
}

static bool add_constants(EventTemplateObject* t, PyObject* from) {
  PyObject *copy = PyDict_Copy(from), *name, *value;
  Py_ssize_t pos = 0;
  bool ok = copy != NULL;
  while (ok && PyDict_Next(copy, &pos, &name, &value))
    ok = add_constant(t, name, value);
  Py_XDECREF(copy);
  return ok;
}

/* Stores the constants of a template: first the entries of `args`, then the
 * remaining keyword arguments. */
static bool take_constants(EventTemplateObject* t, PyObject* const* values,
                           PyObject* names) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
    PyObject* name = PyTuple_GET_ITEM(names, i);
    int option = find_event_option(name);
    if (option == PART_ARGS && PyDict_Check(values[i])) {
      if (!add_constants(t, values[i]))
        return false;
    } else if (option >= 0) {
      PyErr_Format(PyExc_TypeError,
                   "a template has no option %R: pass it with each event",
                   name);
      return false;
    } else if (!add_constant(t, name, values[i])) {
      return false;
    }
  }
  return true;
}

/* Stores the names of a template's values.  names[n] becomes the tuple of the
 * first n names. */
static bool take_names(EventTemplateObject* t, PyObject* const* names,
                       Py_ssize_t count) {
  if (count > MAX_TEMPLATE_VALUES) {
    PyErr_Format(PyExc_ValueError, "a template has at most %d values",
                 MAX_TEMPLATE_VALUES);
    return false;
  }
  t->count = (unsigned)count;
  for (Py_ssize_t n = 0; n <= count; n++) {
    t->names[n] = PyTuple_New(n);
    if (!t->names[n])
      return false;
    for (Py_ssize_t i = 0; i < n; i++)
      PyTuple_SET_ITEM(t->names[n], i, Py_NewRef(names[i]));
  }
  return true;
}

static bool all_are_str(PyObject* const* values, Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < count; i++) {
    if (PyUnicode_CheckExact(values[i]))
      continue;
    PyErr_Format(PyExc_TypeError, "a name must be a str, not %R",
                 (PyObject*)Py_TYPE(values[i]));
    return false;
  }
  return true;
}

PyObject* category_template(PyObject* self, PyObject* const* args,
                            Py_ssize_t count, PyObject* kwnames) {
  static uint64_t last_number;
  if (count < 1) {
    PyErr_SetString(PyExc_TypeError, "template() needs the event's name");
    return NULL;
  }
  if (!all_are_str(args, count))
    return NULL;
  EventTemplateObject* t =
      (EventTemplateObject*)st_event_template_type->tp_alloc(
          st_event_template_type, 0);
  if (!t)
    return NULL;
  t->number = ++last_number;
  t->category = (CategoryObject*)Py_NewRef(self);
  t->name = Py_NewRef(args[0]);
  t->constants = PyDict_New();
  /* Calling the __str__ of a constant counts as recording an event. */
  st_own.events_underway++;
  bool ok = t->constants && take_names(t, args + 1, count - 1) &&
            (!kwnames || take_constants(t, args + count, kwnames));
  st_own.events_underway--;
  if (!ok)
    Py_CLEAR(t);
  return (PyObject*)t;
}

static void template_dealloc(PyObject* self) {
  EventTemplateObject* t = (EventTemplateObject*)self;
  for (unsigned n = 0; n <= MAX_TEMPLATE_VALUES; n++)
    Py_XDECREF(t->names[n]);
  Py_XDECREF(t->constants);
  Py_XDECREF(t->name);
  Py_XDECREF((PyObject*)t->category);
  st_bind_free(self);
}

static PyMethodDef kMethods[] = {
    ST_BIND_KEYWORDS("instant", template_instant,
                     "instant(*values, track=None, flow=None,\n"
                     "        terminating_flow=None, timestamp=None)\n--\n\n"
                     "Record a point in time."),
    ST_BIND_KEYWORDS("slice", template_slice,
                     "slice(*values, track=None, flow=None,\n"
                     "      terminating_flow=None, timestamp=None,\n"
                     "      within=None)\n--\n\n"
                     "A context manager that records the time spent in its "
                     "block; there the\n"
                     "context variable within[0] has the value within[1]."),
    ST_BIND_KEYWORDS("instant_at_entry", template_instant_at,
                     "instant_at_entry(*values, track=None, flow=None,\n"
                     "                 terminating_flow=None, timestamp=None,\n"
                     "                 within=None)\n--\n\n"
                     "A context manager that records a point in time when it "
                     "is entered."),
    {0}};

static PyType_Slot kSlots[] = {
    {Py_tp_doc, "Events of a category that differ in a few values only."},
    {Py_tp_dealloc, template_dealloc},
    {Py_tp_methods, kMethods},
    {0, NULL}};
static PyType_Spec kSpec =
    ST_BIND_SPEC("EventTemplate", EventTemplateObject,
                 Py_TPFLAGS_DISALLOW_INSTANTIATION, kSlots);

ST_BIND_PART(event_template) {
  within_name = PyUnicode_InternFromString("within");
  if (!within_name)
    return -1;
  return st_bind_keep_type(module, &kSpec, &st_event_template_type);
}
