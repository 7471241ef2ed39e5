/* EventTemplate: an event of which all is known but a few values.
 *
 *   t = category.template("Echo", "txid", "bytes", role="send", ...)
 *   t.instant(7, 32)                  the same as, for less than half of it,
 *   category.instant("Echo", txid=7, bytes=32, role="send", ...)
 *
 * An instrumented library records the same events again and again: who calls
 * whom, over what, stays, and the number and the size differ.  What stays is
 * encoded once for each chunk (whose interned ids it consists of), and copied:
 *
 *   packet   time | flags | track_event { type | values | flows | block }
 *   block    category_iid, name_iid, debug_annotations of all constants
 *   values   debug_annotations { name_iid, value } of those that were given
 *
 * An event of a template isn't recorded while its thread records another one:
 * what it tells of (a message that is sent) may be part of the recording, and
 * would never come to an end.
 *
 * Blocks are kept by each thread's sequence, by the template's number, which is
 * never used again.  The first event in a chunk, and all that is unusual
 * (several sessions, many flows, values that are long, or neither numbers nor
 * strings), goes through st_emit, as the call above would: the constants are
 * its `args`. */
#include "bind/common/bind.h"
#include "bind/track_event/track_event.h"
#include "core/fields.h"
#include "core/setters.h"

enum {
  CACHE_ENTRIES = 256,
  MAX_BLOCK = 768,
  MAX_HEAD = 48,       /* all in front of the block */
  MAX_VALUES = 144,    /* bytes of values and flows */
  MAX_FLOW_FIELD = 11, /* tag and fixed64 */
  NEEDS_STATE = 2,     /* TracePacket.sequence_flags */
};

PyTypeObject* st_event_template_type;
static PyObject* within_name; /* "within" */

/* ---- blocks ---- */

struct template_entry {
  uint64_t number; /* of the template; 0: empty */
  uint32_t epoch;
  uint32_t size, capacity;
  uint8_t* block;
  uint32_t iids[MAX_TEMPLATE_VALUES];
};

struct template_cache {
  struct template_entry entries[CACHE_ENTRIES];
};

void template_cache_free(struct template_cache* c) {
  for (int i = 0; c && i < CACHE_ENTRIES; i++)
    PyMem_RawFree(c->entries[i].block);
  PyMem_RawFree(c);
}

static struct template_entry* entry_of(struct template_cache* c,
                                       const EventTemplateObject* template) {
  return &c->entries[template->number & (CACHE_ENTRIES - 1)];
}

/* debug_annotations { name_iid, value }; false: the name has no id. */
static bool append_constant(struct bytes_builder* out,
                            struct thread_sequence* s, PyObject* name,
                            PyObject* value) {
  uint32_t iid = st_identity_find(&s->argument_names, s->core.epoch, name);
  uint8_t* p = iid ? builder_room(out, 16) : NULL;
  if (!p)
    return false;
  size_t tag = out->size;
  out->size += 3; /* tag, and a size of two bytes */
  p = st_debug_annotation_put_name_iid(p + 3, iid);
  out->size = (size_t)(p - out->data);
  append_plain_value(out, value);
  size_t size = out->size - tag - 3;
  if (size > MAX_BLOCK)
    return false;
  out->data[tag] =
      ST_FIELD_TRACK_EVENT_DEBUG_ANNOTATIONS << 3 | ST_WIRE_DELIMITED;
  out->data[tag + 1] = (uint8_t)(size | 0x80);
  out->data[tag + 2] = (uint8_t)(size >> 7);
  return true;
}

static bool append_block(struct bytes_builder* out, struct thread_sequence* s,
                         const EventTemplateObject* template) {
  uint32_t category = known_category(s, template->category);
  uint32_t name = st_identity_find(&s->names, s->core.epoch, template->name);
  uint8_t* p = category && name ? builder_room(out, 32) : NULL;
  if (!p)
    return false;
  p = st_put_small_ids(p + out->size, category, name, 0);
  out->size = (size_t)(p - out->data);
  PyObject *key, *value;
  Py_ssize_t pos = 0;
  while (PyDict_Next(template->constants, &pos, &key, &value)) {
    if (!append_constant(out, s, key, value) || out->size > MAX_BLOCK)
      return false;
  }
  return true;
}

/* Those of values that were not given yet are 0. */
static void find_names(struct template_entry* e, struct thread_sequence* s,
                       PyObject* names) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
    e->iids[i] = st_identity_find(&s->argument_names, s->core.epoch,
                                  PyTuple_GET_ITEM(names, i));
  }
}

void remember_template(struct thread_sequence* s,
                       const EventTemplateObject* template) {
  if (!s->templates)
    s->templates = PyMem_RawCalloc(1, sizeof *s->templates);
  if (!s->templates)
    return;
  struct template_entry* e = entry_of(s->templates, template);
  struct bytes_builder out = {e->block, 0, e->capacity};
  bool ok = append_block(&out, s, template);
  find_names(e, s, template->names[template->count]);
  e->block = out.data;
  e->size = (uint32_t)out.size;
  e->capacity = (uint32_t)out.capacity;
  e->epoch = s->core.epoch;
  e->number = ok ? template->number : 0;
}

/* ---- writing ---- */

static uint8_t* put_time(struct st_sequence* s, uint8_t* p,
                         const struct event_request* r, uint64_t now) {
  uint64_t time = r->has_timestamp ? r->timestamp : now;
  if (time < s->last_timestamp || time > now) {
    p = st_trace_packet_put_timestamp(p, time);
    return st_trace_packet_put_timestamp_clock_id(p, ST_CLOCK_BOOTTIME);
  }
  p = st_trace_packet_put_timestamp(p, time - s->last_timestamp);
  s->last_timestamp = time;
  return p;
}

static uint8_t* put_values(uint8_t* p, const uint8_t* limit,
                           const struct template_entry* e,
                           const struct event_request* r) {
  Py_ssize_t count = PyTuple_GET_SIZE(r->argument_names);
  for (Py_ssize_t i = 0; i < count; i++) {
    if (r->argument_values[i] == Py_None)
      continue;
    if (!e->iids[i])
      return NULL;
    p = put_plain_argument(p, limit, e->iids[i], r->argument_values[i]);
    if (!p)
      return NULL;
  }
  return p;
}

/* One flow at most; NULL: it is none, or several. */
static uint8_t* put_flow(uint8_t* p, const uint8_t* limit, uint32_t field,
                         PyObject* flow) {
  uint64_t id;
  if (!flow)
    return p;
  if (limit - p < MAX_FLOW_FIELD || !single_flow(flow, &id))
    return NULL;
  return st_put_fixed64_field(p, field, id);
}

static uint8_t* put_rest(uint8_t* p, const uint8_t* limit,
                         const struct template_entry* e,
                         const struct event_request* r) {
  p = put_values(p, limit, e, r);
  if (p)
    p = put_flow(p, limit, ST_FIELD_TRACK_EVENT_FLOW_IDS, r->flow);
  if (p)
    p = put_flow(p, limit, ST_FIELD_TRACK_EVENT_TERMINATING_FLOW_IDS,
                 r->terminating_flow);
  if (!p)
    return NULL;
  memcpy(p, e->block, e->size);
  return p + e->size;
}

/* False: nothing happened. */
static bool write_event(struct st_sequence* s, const struct template_entry* e,
                        const struct event_request* r, uint64_t track_uuid) {
  uint64_t last = s->last_timestamp, now = st_fast_now();
  if (!st_sequence_is_current(s) || now < last)
    return false;
  size_t room = MAX_HEAD + e->size + MAX_VALUES;
  uint8_t* start = st_trace_writer_reserve_wide(&s->writer, room);
  if (!start)
    return false;
  uint8_t* p = put_time(s, start, r, now);
  p = st_trace_packet_put_sequence_flags(p, NEEDS_STATE);
  *p++ = ST_FIELD_TRACE_PACKET_TRACK_EVENT << 3 | ST_WIRE_DELIMITED;
  uint8_t* size = p;
  p = st_track_event_put_type(p + 2, r->type);
  p = st_put_small_ids(p, 0, 0, track_uuid);
  p = put_rest(p, start + room - e->size, e, r);
  if (!p) {
    s->last_timestamp = last; /* nothing was committed */
    return false;
  }
  size_t event = (size_t)(p - size - 2);
  size[0] = (uint8_t)(event | 0x80);
  size[1] = (uint8_t)(event >> 7);
  st_trace_writer_commit_wide(&s->writer, p);
  s->events_written++;
  return true;
}

/* The calling thread's sequence and its task's track, if no more than writing
 * is to be done.  May run Python, to ask which task that is. */
static struct thread_sequence* ready_sequence(uint32_t mask, uint64_t* track) {
  struct thread_state* t = st_thread;
  if (UNLIKELY(!t || t->busy || (mask & (mask - 1))))
    return NULL;
  if (context_changed(t, PyThreadState_Get()))
    thread_state_refresh_task(t);
  int slot = __builtin_ctz(mask);
  struct thread_sequence* s = t->sequences[slot];
  if (UNLIKELY(!s || s->generation != st_instances[slot].generation ||
               st_instances[slot].filter_annotations))
    return NULL;
  *track = t->task_track ? t->task_track->core.uuid : 0;
  if (!*track)
    return s;
  size_t seen = st_seen_slot(*track);
  bool described = s->core.seen_tracks[seen].uuid == *track &&
                   s->core.seen_tracks[seen].epoch == s->core.epoch;
  return described ? s : NULL;
}

static bool write_quickly(const struct event_request* r, uint32_t mask) {
  uint64_t track = 0;
  if (r->track || r->left_out)
    return false;
  st_events_underway++;
  struct thread_sequence* s = ready_sequence(mask, &track);
  st_events_underway--;
  if (!s || !s->templates)
    return false;
  const struct template_entry* e = entry_of(s->templates, r->template);
  return e->number == r->template->number && e->epoch == s->core.epoch &&
         write_event(&s->core, e, r, track);
}

uint32_t emit_template(const struct event_request* r, uint32_t mask) {
  if (UNLIKELY(st_events_underway))
    return 0;
  return LIKELY(write_quickly(r, mask)) ? mask : st_emit(r, mask);
}

/* ---- events ---- */

static bool forgive_keyword(struct event_request* r, PyObject* name) {
  return forgive(r, PART_NONE, PyExc_TypeError,
                 "a template's event has no argument %R: name it when the "
                 "template is made",
                 name);
}

static bool take_within(struct event_request* r, PyObject* pair) {
  if (!PyTuple_CheckExact(pair) || PyTuple_GET_SIZE(pair) != 2 ||
      !PyContextVar_CheckExact(PyTuple_GET_ITEM(pair, 0)))
    return forgive(r, PART_NONE, PyExc_TypeError,
                   "within must be a ContextVar and its value, not %R", pair);
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

void template_request(struct event_request* r, EventTemplateObject* template,
                      PyObject* const* values, Py_ssize_t count) {
  while (count > 0 && values[count - 1] == Py_None)
    count--;
  r->category = template->category;
  r->template = template;
  r->name = template->name;
  r->argument_names = template->names[count];
  r->argument_values = values;
  r->more_arguments = template->constants;
}

/* False: wrong use that is to be raised (misuse.c). */
static bool parse(struct event_request* r, EventTemplateObject* template,
                  PyObject* const* args, Py_ssize_t count, PyObject* kwnames) {
  Py_ssize_t most = template->count;
  template_request(r, template, args, Py_MIN(count, most));
  if (UNLIKELY(count > most) &&
      !forgive(r, PART_POSITIONAL, PyExc_TypeError,
               "a template with %zd values got %zd", most, count))
    return false;
  return !kwnames || take_keywords(r, args + count, kwnames);
}

static PyObject* template_instant(PyObject* self, PyObject* const* args,
                                  Py_ssize_t count, PyObject* kwnames) {
  EventTemplateObject* template = (EventTemplateObject*)self;
  uint32_t mask = template->category->enabled;
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
  if (LIKELY(!template->category->enabled))
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

/* ---- the type ---- */

/* What stays as it is: others are shown as their text is now.  Runs Python. */
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

/* `args=` of the keywords, then the others. */
static bool take_constants(EventTemplateObject* t, PyObject* const* values,
                           PyObject* names) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
    PyObject* name = PyTuple_GET_ITEM(names, i);
    int option = find_event_option(name);
    if (option == PART_ARGS && PyDict_Check(values[i])) {
      if (!add_constants(t, values[i]))
        return false;
    } else if (option >= 0) {
      PyErr_Format(PyExc_TypeError, "%R can't be said of a template", name);
      return false;
    } else if (!add_constant(t, name, values[i])) {
      return false;
    }
  }
  return true;
}

/* names[n]: the first n of them. */
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

PyObject* template_new(CategoryObject* category, PyObject* const* args,
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
  t->category = (CategoryObject*)Py_NewRef((PyObject*)category);
  t->name = Py_NewRef(args[0]);
  t->constants = PyDict_New();
  st_events_underway++; /* the text of a constant is part of an event */
  bool ok = t->constants && take_names(t, args + 1, count - 1) &&
            (!kwnames || take_constants(t, args + count, kwnames));
  st_events_underway--;
  if (!ok)
    Py_CLEAR(t);
  return (PyObject*)t;
}

static void template_dealloc(PyObject* self) {
  EventTemplateObject* t = (EventTemplateObject*)self;
  PyTypeObject* type = Py_TYPE(self);
  for (unsigned n = 0; n <= MAX_TEMPLATE_VALUES; n++)
    Py_XDECREF(t->names[n]);
  Py_XDECREF(t->constants);
  Py_XDECREF(t->name);
  Py_XDECREF((PyObject*)t->category);
  type->tp_free(self);
  Py_DECREF(type);
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
static PyType_Spec kSpec = {
    "stretto._native.EventTemplate", sizeof(EventTemplateObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, kSlots};

int add_event_template_type(PyObject* module) {
  within_name = PyUnicode_InternFromString("within");
  if (!within_name)
    return -1;
  st_event_template_type =
      (PyTypeObject*)PyType_FromModuleAndSpec(module, &kSpec, NULL);
  return st_event_template_type
             ? PyModule_AddType(module, st_event_template_type)
             : -1;
}
