/* Category: what a program's events are switched on and off by.
 *
 * One object per name, for ever: making it again returns the same.  `enabled`
 * has a bit per slot; 0 is the common case, and all that a disabled event
 * looks at. */
#include "bind/common/bind.h"
#include "bind/track_event/track_event.h"

#include <structmember.h>

PyTypeObject* st_category_type;

static PyObject* categories; /* dict: name -> Category */
static PyObject* new_category_hook;
static uint32_t category_count;

static PyObject* option_names[EVENT_OPTIONS]; /* interned */

/* ---- arguments of events ---- */

int find_event_option(PyObject* name) {
  for (int i = 0; i < EVENT_OPTIONS; i++) {
    if (name == option_names[i])
      return i;
  }
  if (PyUnicode_CHECK_INTERNED(name))
    return -1;
  for (int i = 0; i < EVENT_OPTIONS; i++) {
    if (PyUnicode_Compare(name, option_names[i]) == 0)
      return i;
  }
  return -1;
}

bool is_event_option(PyObject* name) {
  return find_event_option(name) >= 0;
}

static bool take_track(struct event_request* r, PyObject* value) {
  if (value == Py_None)
    return true;
  if (Py_TYPE(value) != st_track_type)
    return forgive(r, PART_TRACK, PyExc_TypeError,
                   "track must be a stretto.Track, not %R: make one with "
                   "stretto.Track(name)",
                   (PyObject*)Py_TYPE(value));
  r->track = (TrackObject*)value;
  return true;
}

static bool take_timestamp(struct event_request* r, PyObject* value) {
  if (value == Py_None)
    return true;
  int overflow = 0;
  long long ns =
      PyLong_Check(value) ? PyLong_AsLongLongAndOverflow(value, &overflow) : -1;
  if (ns < 0 || overflow)
    return forgive(r, PART_TIMESTAMP, PyExc_ValueError,
                   "timestamp must be an int of nanoseconds of CLOCK_BOOTTIME "
                   "(stretto.now()), not %R",
                   value);
  r->has_timestamp = true;
  r->timestamp = (uint64_t)ns;
  return true;
}

static bool take_flow(struct event_request* r, enum event_part part,
                      PyObject** flow, PyObject* value) {
  if (value == Py_None)
    return true;
  if (!may_be_flows(value))
    return forgive(r, part, PyExc_TypeError,
                   "%s must be a stretto.Flow, an id or a list of them, not %R",
                   st_part_names[part], value);
  *flow = value;
  return true;
}

static bool take_args(struct event_request* r, PyObject* value) {
  if (!PyDict_Check(value))
    return forgive(r, PART_ARGS, PyExc_TypeError,
                   "args must be a dict of arguments");
  r->more_arguments = value;
  return true;
}

bool take_event_option(struct event_request* r, enum event_part option,
                       PyObject* value) {
  switch (option) {
    case PART_TRACK:
      return take_track(r, value);
    case PART_TIMESTAMP:
      return take_timestamp(r, value);
    case PART_FLOW:
      return take_flow(r, option, &r->flow, value);
    case PART_TERMINATING_FLOW:
      return take_flow(r, option, &r->terminating_flow, value);
    default:
      return take_args(r, value);
  }
}

/* Marks those of the first 32 names that are ours; beyond, st_emit asks
 * is_event_option. */
static bool take_keywords(struct event_request* r, PyObject* const* values,
                          PyObject* kwnames) {
  Py_ssize_t count = PyTuple_GET_SIZE(kwnames);
  r->argument_names = kwnames;
  r->argument_values = values;
  for (Py_ssize_t i = 0; i < count; i++) {
    int option = find_event_option(PyTuple_GET_ITEM(kwnames, i));
    if (option < 0)
      continue;
    if (i < 32)
      r->skip_names |= 1u << i;
    if (!take_event_option(r, (enum event_part)option, values[i]))
      return false;
  }
  return true;
}

static bool forgive_count(struct event_request* r, const char* function,
                          Py_ssize_t positional, Py_ssize_t count) {
  return forgive(r, PART_POSITIONAL, PyExc_TypeError,
                 "%s() takes %zd positional argument%s, got %zd", function,
                 positional, positional == 1 ? "" : "s", count);
}

/* Fills the request from a call's arguments; `positional` of them besides
 * self, the only one of which is the name (NULL: it was forgotten).  False:
 * wrong use that is to be raised (misuse.c). */
static bool parse_event(struct event_request* r, const char* function,
                        Py_ssize_t positional, PyObject* const* args,
                        Py_ssize_t count, PyObject* kwnames) {
  if (UNLIKELY(count != positional) &&
      !forgive_count(r, function, positional, count))
    return false;
  if (positional == 1 && count > 0)
    r->name = args[0];
  return !kwnames || take_keywords(r, args + count, kwnames);
}

/* ---- events ---- */

static PyObject* category_instant(PyObject* self, PyObject* const* args,
                                  Py_ssize_t count, PyObject* kwnames) {
  CategoryObject* category = (CategoryObject*)self;
  uint32_t mask = category->enabled;
  if (LIKELY(!mask))
    Py_RETURN_NONE;
  if (count == 1 && !kwnames && emit_fast(ST_INSTANT, category, args[0], mask))
    Py_RETURN_NONE;
  if (count == 1 && kwnames &&
      emit_plain(ST_INSTANT, category, args[0], mask, kwnames, args + 1))
    Py_RETURN_NONE;
  struct event_request r = {.type = ST_INSTANT, .category = category};
  if (!parse_event(&r, "instant", 1, args, count, kwnames))
    return NULL;
  st_emit(&r, mask);
  Py_RETURN_NONE;
}

static PyObject* category_slice(PyObject* self, PyObject* const* args,
                                Py_ssize_t count, PyObject* kwnames) {
  CategoryObject* category = (CategoryObject*)self;
  if (LIKELY(!category->enabled))
    return Py_NewRef(st_empty_slice);
  struct event_request r = {.type = ST_SLICE_BEGIN, .category = category};
  if (!parse_event(&r, "slice", 1, args, count, kwnames))
    return NULL;
  return slice_new(&r);
}

static PyObject* category_slice_for_code(PyObject* self, PyObject* code) {
  CategoryObject* category = (CategoryObject*)self;
  if (LIKELY(!category->enabled))
    return Py_NewRef(st_empty_slice);
  struct event_request r = {.type = ST_SLICE_BEGIN, .category = category};
  if (PyCode_Check(code))
    r.code = code;
  else if (!forgive(&r, PART_POSITIONAL, PyExc_TypeError,
                    "slice_for_code() takes a code object"))
    return NULL;
  return slice_new(&r);
}

static bool is_number(PyObject* value) {
  return PyNumber_Check(value) && !PyComplex_Check(value);
}

/* False, maybe with wrong use that is to be raised: there is no counter. */
static bool check_counter(struct event_request* r, PyObject* const* args,
                          Py_ssize_t count) {
  if (count < 2)
    return false;
  if (!is_number(args[1])) {
    forgive(r, PART_NONE, PyExc_TypeError,
            "a counter's value must be a number, not %R",
            (PyObject*)Py_TYPE(args[1]));
    return false;
  }
  return PyUnicode_Check(args[0]) ||
         forgive(r, PART_NONE, PyExc_TypeError,
                 "a counter's name must be a str, not %R",
                 (PyObject*)Py_TYPE(args[0]));
}

/* A new reference; NULL: its name can't be had, which is counted. */
static TrackObject* track_of_counter(PyObject* name, TrackObject* parent) {
  PyObject* text = PyUnicode_Check(name) ? Py_NewRef(name) : PyObject_Str(name);
  TrackObject* track = text ? counter_track(text, (PyObject*)parent) : NULL;
  if (!track)
    swallow_error();
  Py_XDECREF(text);
  return track;
}

static PyObject* category_counter(PyObject* self, PyObject* const* args,
                                  Py_ssize_t count, PyObject* kwnames) {
  CategoryObject* category = (CategoryObject*)self;
  uint32_t mask = category->enabled;
  if (LIKELY(!mask))
    Py_RETURN_NONE;
  struct event_request r = {.type = ST_COUNTER, .category = category};
  if (!parse_event(&r, "counter", 2, args, count, kwnames))
    return NULL;
  if (!check_counter(&r, args, count))
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
  if (!thread_state_get())
    Py_RETURN_NONE;
  TrackObject* track = track_of_counter(args[0], r.track);
  if (!track)
    Py_RETURN_NONE;
  r.track = track;
  r.value = args[1];
  st_emit(&r, mask);
  Py_DECREF(track);
  Py_RETURN_NONE;
}

static PyObject* category_template(PyObject* self, PyObject* const* args,
                                   Py_ssize_t count, PyObject* kwnames) {
  return template_new((CategoryObject*)self, args, count, kwnames);
}

/* ---- begin and end ---- */

/* The track that begin() and end() mean: the one given, else the task's or the
 * thread's. */
static uint64_t begin_track(struct thread_state* t, TrackObject* track) {
  if (track)
    return track_resolve(track)->uuid;
  if (context_changed(t, PyThreadState_Get()))
    thread_state_refresh_task(t);
  return t->task_track ? t->task_track->core.uuid : t->track.uuid;
}

static PyObject* category_begin(PyObject* self, PyObject* const* args,
                                Py_ssize_t count, PyObject* kwnames) {
  CategoryObject* category = (CategoryObject*)self;
  uint32_t mask = category->enabled;
  if (LIKELY(!mask))
    Py_RETURN_NONE;
  struct event_request r = {.type = ST_SLICE_BEGIN, .category = category};
  if (!parse_event(&r, "begin", 1, args, count, kwnames))
    return NULL;
  uint32_t written = st_emit(&r, mask);
  struct thread_state* t = st_thread;
  if (t)
    open_begins_push(begin_track(t, r.track), mask, written);
  Py_RETURN_NONE;
}

static PyObject* category_end(PyObject* self, PyObject* const* args,
                              Py_ssize_t count, PyObject* kwnames) {
  CategoryObject* category = (CategoryObject*)self;
  uint32_t mask = category->enabled;
  if (LIKELY(!mask))
    Py_RETURN_NONE;
  struct event_request r = {.type = ST_SLICE_END, .category = category};
  if (!parse_event(&r, "end", 0, args, count, kwnames))
    return NULL;
  struct thread_state* t = thread_state_get();
  if (!t)
    Py_RETURN_NONE;
  uint64_t track = begin_track(t, r.track);
  r.since = st_start_counter;
  uint32_t begun = open_begins_pop(track, mask);
  if (begun)
    st_emit(&r, begun);
  Py_RETURN_NONE;
}

/* ---- the decorator: written in Python ---- */

static PyObject* trace_function; /* (category, target) -> target, traced */

static PyObject* category_traced(PyObject* self, PyObject* target) {
  if (!trace_function)
    return Py_NewRef(target);
  return PyObject_CallFunctionObjArgs(trace_function, self, target, NULL);
}

static PyObject* set_traced(PyObject* module, PyObject* function) {
  (void)module;
  Py_XSETREF(trace_function, Py_NewRef(function));
  Py_RETURN_NONE;
}

/* ---- switching ---- */

static PyObject* category_set_slot(PyObject* self, PyObject* const* args,
                                   Py_ssize_t count) {
  CategoryObject* category = (CategoryObject*)self;
  int64_t slot = 0;
  if (count != 2) {
    PyErr_SetString(PyExc_TypeError, "set_slot(slot, enabled)");
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

static PyObject* category_get_enabled(PyObject* self, void* unused) {
  (void)unused;
  return PyBool_FromLong(((CategoryObject*)self)->enabled != 0);
}

/* ---- the benchmark's reference: the same call that does nothing ---- */

static PyObject* category_empty(PyObject* self, PyObject* const* args,
                                Py_ssize_t count, PyObject* kwnames) {
  (void)self;
  (void)args;
  (void)count;
  (void)kwnames;
  Py_RETURN_NONE;
}

static PyObject* category_empty_slice(PyObject* self, PyObject* const* args,
                                      Py_ssize_t count, PyObject* kwnames) {
  (void)self;
  (void)args;
  (void)count;
  (void)kwnames;
  return Py_NewRef(st_empty_slice);
}

/* ---- making categories ---- */

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
  CategoryObject* c =
      (CategoryObject*)Py_XNewRef(PyDict_GetItemWithError(categories, name));
  bool is_new = !c && !PyErr_Occurred();
  if (is_new)
    c = make_category(type, name);
  Py_DECREF(name);
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

static void category_dealloc(PyObject* self) {
  CategoryObject* c = (CategoryObject*)self;
  PyTypeObject* type = Py_TYPE(self);
  if (c->weakrefs)
    PyObject_ClearWeakRefs(self);
  Py_XDECREF(c->name);
  Py_XDECREF(c->description);
  Py_XDECREF(c->tags);
  type->tp_free(self);
  Py_DECREF(type);
}

static PyObject* category_repr(PyObject* self) {
  return PyUnicode_FromFormat("stretto.Category(%R)",
                              ((CategoryObject*)self)->name);
}

static PyObject* category_reduce(PyObject* self, PyObject* unused) {
  (void)unused;
  CategoryObject* c = (CategoryObject*)self;
  return Py_BuildValue("O(OOO)", (PyObject*)Py_TYPE(self), c->name,
                       c->description, c->tags);
}

#define FAST(f) (PyCFunction)(void (*)(void))(f), METH_FASTCALL | METH_KEYWORDS

static PyMethodDef kMethods[] = {
    {"instant", FAST(category_instant),
     "instant(name, /, *, track=None, flow=None, terminating_flow=None,\n"
     "        timestamp=None, args={}, **arguments)\n--\n\n"
     "Record a point in time."},
    {"slice", FAST(category_slice),
     "slice(name, /, *, track=None, flow=None, terminating_flow=None,\n"
     "      timestamp=None, args={}, **arguments)\n--\n\n"
     "A context manager that records the time spent in its block."},
    {"slice_for_code", category_slice_for_code, METH_O,
     "slice_for_code(code, /)\n--\n\n"
     "A slice named and located by a code object."},
    {"counter", FAST(category_counter),
     "counter(name, value, /, *, track=None, timestamp=None)\n--\n\n"
     "Record the value of a quantity; `track` is the parent track."},
    {"begin", FAST(category_begin),
     "begin(name, /, *, track=None, flow=None, terminating_flow=None,\n"
     "      timestamp=None, args={}, **arguments)\n--\n\n"
     "Begin a slice that end() on the same track ends."},
    {"end", FAST(category_end),
     "end(*, track=None, flow=None, terminating_flow=None, timestamp=None,\n"
     "    args={}, **arguments)\n--\n\n"
     "End the innermost slice that begin() opened on the track."},
    {"template", FAST(category_template),
     "template(name, /, *names, args={}, **constants)\n--\n\n"
     "Prepare events that differ in the values of `names` only."},
    {"traced", category_traced, METH_O,
     "traced(target, /)\n--\n\n"
     "Decorate a function, method or class: every call becomes a slice."},
    {"empty", FAST(category_empty),
     "Does nothing: the benchmark's measure of a disabled event."},
    {"empty_slice", FAST(category_empty_slice),
     "The context manager that does nothing: likewise."},
    {"set_slot", (PyCFunction)(void (*)(void))category_set_slot, METH_FASTCALL,
     "set_slot(slot, enabled)"},
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

static PyType_Spec kSpec = {"stretto._native.Category", sizeof(CategoryObject),
                            0, Py_TPFLAGS_DEFAULT, kSlots};

static PyObject* all_categories(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  return PyDict_Values(categories);
}

static PyObject* set_new_category_hook(PyObject* module, PyObject* hook) {
  (void)module;
  Py_XSETREF(new_category_hook, Py_NewRef(hook));
  Py_RETURN_NONE;
}

static PyObject* disable_all_categories(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  PyObject *name, *category;
  Py_ssize_t pos = 0;
  while (PyDict_Next(categories, &pos, &name, &category))
    ((CategoryObject*)category)->enabled = 0;
  Py_RETURN_NONE;
}

static PyMethodDef kFunctions[] = {
    {"categories", all_categories, METH_NOARGS, "All categories there are."},
    {"set_new_category_hook", set_new_category_hook, METH_O,
     "Call hook(category) for each category made or tagged from now on."},
    {"set_traced", set_traced, METH_O, "What Category.traced calls."},
    {"disable_all_categories", disable_all_categories, METH_NOARGS,
     "Clear every slot of every category."},
    {NULL, NULL, 0, NULL}};

int add_category_type(PyObject* module) {
  for (int i = 0; i < EVENT_OPTIONS; i++) {
    option_names[i] = PyUnicode_InternFromString(st_part_names[i]);
    if (!option_names[i])
      return -1;
  }
  categories = PyDict_New();
  if (!categories)
    return -1;
  st_category_type =
      (PyTypeObject*)PyType_FromModuleAndSpec(module, &kSpec, NULL);
  if (!st_category_type)
    return -1;
  if (PyModule_AddType(module, st_category_type) < 0)
    return -1;
  return PyModule_AddFunctions(module, kFunctions);
}
