#include "bind/track_event/slice.h"

#include "bind/common/with_methods.h"
#include "bind/track_event/emit.h"
#include "bind/track_event/emit_fast.h"
#include "bind/track_event/emit_plain.h"
#include "bind/track_event/emit_template.h"
#include "bind/track_event/task_track.h"
#include "core/session_slots.h"

enum { MAX_FREE = 64 };

typedef struct {
  PyObject_HEAD
  CategoryObject* category;
  PyObject* name;
  PyObject* code;
  TrackObject* track;
  PyObject* flow;
  PyObject* terminating_flow;
  /* The names of all keyword arguments, including options: a tuple of str. */
  PyObject* names;
  PyObject* values; /* The values of all keyword arguments: a tuple. */
  PyObject* more_arguments;
  uint64_t timestamp;
  uint32_t skip_names;
  bool has_timestamp;
  /* The wrong parts of the call, which the event omits: bits of event_part. */
  uint8_t left_out;
  /* Whether the slice has only a name and plain arguments, so that the fast
   * path may apply. */
  bool may_be_quick;
  /* Whether the slice has more than a category and a name.  If not, the members
   * that keep_parts sets are zero. */
  bool has_parts;
  uint32_t depth;
  struct slice_entry first;
  struct slice_entry*
      deeper; /* The stack of open entries from the second entry on. */
  /* The template of the slice.  If it is NULL, the members below are unused. */
  EventTemplateObject* template;
  /* The type of the event: ST_SLICE_BEGIN, or ST_INSTANT for one event on entry
   * without an END. */
  uint8_t type;
  /* The option `within`: a tuple (context variable, value), or NULL. */
  PyObject* within;
  /* The token with which the context variable is reset; NULL if the variable is
   * not set. */
  PyObject* token;
} SliceObject;

static PyTypeObject* slice_type;
static PyTypeObject* empty_type;
PyObject* st_empty_slice;

static SliceObject* free_list[MAX_FREE];
static int free_count;

/* Returns a slice whose members are zero: those of the free list were cleared
 * by slice_dealloc. */
static SliceObject* slice_alloc(void) {
  if (!free_count)
    return (SliceObject*)slice_type->tp_alloc(slice_type, 0);
  SliceObject* s = free_list[--free_count];
  return (SliceObject*)PyObject_Init((PyObject*)s, slice_type);
}

static bool keep_arguments(SliceObject* s, const struct event_request* r) {
  Py_ssize_t count = PyTuple_GET_SIZE(r->argument_names);
  s->values = PyTuple_New(count);
  if (!s->values)
    return false;
  for (Py_ssize_t i = 0; i < count; i++)
    PyTuple_SET_ITEM(s->values, i, Py_NewRef(r->argument_values[i]));
  s->names = Py_NewRef(r->argument_names);
  return true;
}

PyObject* slice_new_plain(CategoryObject* category, PyObject* name) {
  SliceObject* s = slice_alloc();
  if (!s)
    return NULL;
  s->category = (CategoryObject*)Py_NewRef((PyObject*)category);
  s->name = Py_XNewRef(name);
  s->may_be_quick = name != NULL;
  return (PyObject*)s;
}

PyObject* slice_new(const struct event_request* r) {
  SliceObject* s = (SliceObject*)slice_new_plain(r->category, r->name);
  if (!s)
    return NULL;
  s->has_parts = true;
  s->code = Py_XNewRef(r->code);
  s->track = (TrackObject*)Py_XNewRef((PyObject*)r->track);
  s->flow = Py_XNewRef(r->flow);
  s->terminating_flow = Py_XNewRef(r->terminating_flow);
  s->more_arguments = Py_XNewRef(r->more_arguments);
  s->timestamp = r->timestamp;
  s->has_timestamp = r->has_timestamp;
  s->skip_names = r->skip_names;
  s->left_out = r->left_out;
  s->may_be_quick &= !r->left_out && !r->more_arguments && !r->has_timestamp;
  if (r->argument_names && !keep_arguments(s, r)) {
    Py_DECREF(s);
    return NULL;
  }
  return (PyObject*)s;
}

PyObject* template_slice_new(const struct event_request* r) {
  SliceObject* s = (SliceObject*)slice_new(r);
  if (!s)
    return NULL;
  s->template = (EventTemplateObject*)Py_NewRef((PyObject*)r->template);
  s->type = (uint8_t)r->type;
  s->within = Py_XNewRef(r->within);
  return (PyObject*)s;
}

RARE static void drop_parts(SliceObject* s) {
  Py_CLEAR(s->code);
  Py_CLEAR(s->track);
  Py_CLEAR(s->flow);
  Py_CLEAR(s->terminating_flow);
  Py_CLEAR(s->names);
  Py_CLEAR(s->values);
  Py_CLEAR(s->more_arguments);
  Py_CLEAR(s->template);
  Py_CLEAR(s->within);
  Py_CLEAR(s->token);
  s->has_parts = s->has_timestamp = false;
  s->skip_names = 0;
  s->left_out = 0;
}

static void slice_dealloc(PyObject* self) {
  SliceObject* s = (SliceObject*)self;
  PyTypeObject* type = Py_TYPE(self);
  Py_CLEAR(s->category);
  Py_CLEAR(s->name);
  if (UNLIKELY(s->has_parts))
    drop_parts(s);
  if (UNLIKELY(s->deeper)) {
    PyMem_RawFree(s->deeper);
    s->deeper = NULL;
  }
  s->depth = 0;
  if (ST_FREE_LISTS && free_count < MAX_FREE)
    free_list[free_count++] = s;
  else
    type->tp_free(self);
  Py_DECREF(type);
}

static struct slice_entry* push_entry(SliceObject* s) {
  if (s->depth == 0) {
    s->depth = 1;
    return &s->first;
  }
  struct slice_entry* grown =
      PyMem_RawRealloc(s->deeper, s->depth * sizeof *grown);
  if (!grown)
    return NULL;
  s->deeper = grown;
  return &s->deeper[s->depth++ - 1];
}

/* Returns the innermost entry, which stays valid until the next push.  It is
 * not copied: a copy would load the two stores of the mask and the counter as
 * one word, which stalls the processor. */
static const struct slice_entry* pop_entry(SliceObject* s) {
  static const struct slice_entry none;
  if (s->depth == 0)
    return &none;
  s->depth--;
  return s->depth == 0 ? &s->first : &s->deeper[s->depth - 1];
}

/* Stores that a call of a @traced function has a slice: the function's code,
 * and the slots that got the slice.  Function tracing reads this data, so that
 * it adds no second slice for the call.  The data is dropped when the function
 * is entered or the slice ends.  Nothing is stored for a coroutine function:
 * its slice covers all steps of the coroutine, and function tracing records
 * these steps as well. */
static inline void remember_traced(PyObject* code, uint32_t written) {
  int flags = ((PyCodeObject*)code)->co_flags;
  struct thread_state* t = st_own.state;
  if (!t || (flags & (CO_COROUTINE | CO_ASYNC_GENERATOR)))
    return;
  t->traced_code = code;
  t->traced_mask = written;
}

static inline void forget_traced(const PyObject* code) {
  struct thread_state* t = st_own.state;
  if (t && t->traced_code == code)
    t->traced_code = NULL;
}

RARE static uint32_t write_begin(SliceObject* s, uint32_t mask) {
  struct event_request r = {
      .type = s->template ? (enum st_event_type)s->type : ST_SLICE_BEGIN,
      .category = s->category,
      .template = s->template,
      .name = s->name,
      .code = s->code,
      .track = s->track,
      .flow = s->flow,
      .terminating_flow = s->terminating_flow,
      .more_arguments = s->more_arguments,
      .has_timestamp = s->has_timestamp,
      .timestamp = s->timestamp,
      .skip_names = s->skip_names,
      .left_out = s->left_out,
      .argument_names = s->names,
  };
  if (s->values)
    r.argument_values = &PyTuple_GET_ITEM(s->values, 0);
  return s->template ? emit_template(&r, mask) : st_emit(&r, mask);
}

/* Returns the uuid of the track of the BEGIN.  The END has to name this track,
 * because another thread or task may write the END. */
static uint64_t effective_track(TrackObject* track) {
  const struct thread_state* t = st_own.state;
  if (track)
    return track_resolve(track)->uuid;
  if (!t)
    return 0;
  return current_track_uuid(t);
}

/* Writes the BEGIN to the slots in `mask`.  Returns the slots for which the
 * caller has to use st_emit. */
static uint32_t begin_quickly(SliceObject* s, uint32_t mask) {
  if (!s->may_be_quick)
    return mask;
  PyObject* const* values = s->names ? &PyTuple_GET_ITEM(s->values, 0) : NULL;
  mask = s->names ? emit_plain(ST_SLICE_BEGIN, s->category, s->name, mask,
                               s->names, values)
                  : emit_fast(ST_SLICE_BEGIN, s->category, s->name, mask);
  return LIKELY(!mask) ? 0
                       : emit_new_name(ST_SLICE_BEGIN, s->category, s->name,
                                       mask, s->names, values);
}

/* Begins entry number `index` of a slice.  The entry is looked up only after
 * the event is written: the repr of an argument may enter the same slice, and
 * the stack of entries then moves. */
static void begin(SliceObject* s, uint32_t mask, uint32_t index) {
  uint32_t rest = begin_quickly(s, mask), written = mask & ~rest;
  if (UNLIKELY(rest))
    written |= write_begin(s, rest);
  if (index >= s->depth)
    return;
  struct slice_entry* e = index == 0 ? &s->first : &s->deeper[index - 1];
  /* The start counter is read after the BEGIN was written.  A session that was
   * started while the arguments were converted may have got this BEGIN.  It
   * then has to get the END, too. */
  *e = (struct slice_entry){written, st_start_counter,
                            effective_track(s->track)};
  if (UNLIKELY(s->code))
    remember_traced(s->code, written);
}

/* Sets the context variable of the slice.  Only the first of nested entries
 * sets the variable, and its exit resets the variable. */
static bool set_variable(SliceObject* s) {
  if (!s->token)
    s->token = PyContextVar_Set(PyTuple_GET_ITEM(s->within, 0),
                                PyTuple_GET_ITEM(s->within, 1));
  return s->token != NULL;
}

RARE static void reset_variable(SliceObject* s) {
  PyObject* token = s->token;
  s->token = NULL;
  /* The reset fails if the variable was set in another context, for example if
   * another context closes a generator.  That error is ignored. */
  if (token && PyContextVar_Reset(PyTuple_GET_ITEM(s->within, 0), token) < 0)
    PyErr_Clear();
  Py_XDECREF(token);
}

/* Enters a slice that was made from a template.  Returns false with an
 * exception set on failure. */
RARE static bool enter_template(SliceObject* s) {
  uint32_t mask = category_mask(s->category);
  if (s->within && !set_variable(s))
    return false;
  if (mask && s->type == ST_INSTANT)
    write_begin(s, mask);
  return true;
}

static PyObject* slice_enter(PyObject* self, PyObject* Py_UNUSED(unused)) {
  SliceObject* s = (SliceObject*)self;
  bool is_instant = false;
  if (UNLIKELY(s->template)) {
    if (!enter_template(s))
      return NULL;
    is_instant = s->type == ST_INSTANT;
  }
  struct slice_entry* e = push_entry(s);
  if (!e)
    return PyErr_NoMemory();
  *e = (struct slice_entry){0, 0, 0};
  uint32_t mask = category_mask(s->category);
  if (mask && !is_instant)
    begin(s, mask, s->depth - 1);
  return Py_NewRef(self);
}

/* Ends a slice.  `type` is the type of the exception that left the slice's
 * block, or NULL. */
static void end(const struct slice_entry* e, PyObject* type) {
  uint32_t mask = 0;
  for (uint32_t rest = e->mask; rest; rest &= rest - 1) {
    int slot = __builtin_ctz(rest);
    if (st_slot_runs_since(slot, e->start_counter))
      mask |= 1u << slot;
  }
  if (!mask)
    return;
  if (UNLIKELY(type)) {
    struct event_request r = {.since = e->start_counter,
                              .track_uuid = e->track_uuid};
    st_emit_raised_end(&r, mask, type);
    return;
  }
  mask = emit_end_fast(e->track_uuid, mask);
  if (LIKELY(!mask))
    return;
  struct event_request r = {.type = ST_SLICE_END,
                            .since = e->start_counter,
                            .track_uuid = e->track_uuid};
  st_emit(&r, mask);
}

struct slice_entry slice_begin_code(CategoryObject* category, PyObject* code) {
  uint32_t mask = category_mask(category);
  if (!mask)
    return (struct slice_entry){0};
  if (emit_code(category, code, mask)) {
    remember_traced(code, mask);
  } else {
    struct event_request r = {
        .type = ST_SLICE_BEGIN, .category = category, .code = code};
    /* The event may run Python code that drops the last other reference to
     * `code`. */
    Py_INCREF(code);
    mask = st_emit(&r, mask);
    remember_traced(code, mask);
    Py_DECREF(code);
  }
  return (struct slice_entry){mask, st_start_counter, effective_track(NULL)};
}

void slice_end_code(const struct slice_entry* e, PyObject* code) {
  if (!e->mask)
    return;
  forget_traced(code);
  if (LIKELY(!PyErr_Occurred())) {
    end(e, NULL);
    return;
  }
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  end(e, type);
  PyErr_Restore(type, value, traceback);
}

static PyObject* slice_exit(PyObject* self, PyObject* const* args,
                            Py_ssize_t count) {
  SliceObject* s = (SliceObject*)self;
  const struct slice_entry* e = pop_entry(s);
  if (UNLIKELY(s->template) && s->token && s->depth == 0)
    reset_variable(s);
  if (UNLIKELY(s->code))
    forget_traced(s->code);
  if (e->mask)
    end(e, count > 0 && PyType_Check(args[0]) ? args[0] : NULL);
  Py_RETURN_NONE;
}

static PyObject* empty_enter(PyObject* self, PyObject* Py_UNUSED(unused)) {
  return Py_NewRef(self);
}

static PyObject* empty_exit(PyObject* Py_UNUSED(self),
                            PyObject* const* Py_UNUSED(args),
                            Py_ssize_t Py_UNUSED(count)) {
  Py_RETURN_NONE;
}

static void empty_dealloc(PyObject* self) {
  st_bind_free(self);
}

bool slice_pass(PyObject* slice) {
  PyObject* entered = slice_enter(slice, NULL);
  if (!entered)
    return false;
  Py_DECREF(entered);
  Py_XDECREF(slice_exit(slice, NULL, 0));
  return true;
}

static PyMethodDef kMethods[] = {
    {"__enter__", slice_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))slice_exit, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL}};

static PyMethodDef kEmptyMethods[] = {
    {"__enter__", empty_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))empty_exit, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL}};

static PyType_Slot kSlots[] = {
    {Py_tp_doc, "A slice as a context manager: `with category.slice(name):`"},
    {Py_tp_dealloc, slice_dealloc},
    {Py_tp_methods, kMethods},
    {0, NULL}};
static PyType_Spec kSpec = ST_BIND_SPEC(
    "Slice", SliceObject, Py_TPFLAGS_DISALLOW_INSTANTIATION, kSlots);

static PyType_Slot kEmptySlots[] = {
    {Py_tp_doc, "A slice of a category that no session records."},
    {Py_tp_dealloc, empty_dealloc},
    {Py_tp_methods, kEmptyMethods},
    {0, NULL}};
static PyType_Spec kEmptySpec = ST_BIND_SPEC(
    "EmptySlice", PyObject, Py_TPFLAGS_DISALLOW_INSTANTIATION, kEmptySlots);

ST_BIND_PART(slice) {
  slice_type = (PyTypeObject*)PyType_FromModuleAndSpec(module, &kSpec, NULL);
  empty_type =
      (PyTypeObject*)PyType_FromModuleAndSpec(module, &kEmptySpec, NULL);
  if (!slice_type || !empty_type || st_bind_with_methods(slice_type) < 0 ||
      st_bind_with_methods(empty_type) < 0)
    return -1;
  st_empty_slice = empty_type->tp_alloc(empty_type, 0);
  if (!st_empty_slice)
    return -1;
  return PyModule_AddObjectRef(module, "EMPTY_SLICE", st_empty_slice);
}
