#include "bind/track_event/emit.h"

#include "bind/common/text.h"
#include "bind/track_event/annotations.h"
#include "bind/track_event/argument_errors.h"
#include "bind/track_event/emit_plain.h"
#include "bind/track_event/event_options.h"
#include "bind/track_event/flow.h"
#include "bind/track_event/interning.h"
#include "bind/track_event/log_message.h"
#include "bind/track_event/misuse.h"
#include "bind/track_event/source_location.h"
#include "bind/track_event/task_track.h"
#include "bind/track_event/template_blocks.h"
#include "core/fast_clock.h"
#include "core/fields.h"
#include "core/setters.h"

enum {
  MAX_ARGUMENTS = 128,
  /* Reprs of arguments may record events, whose arguments have reprs, too.
   * This is the largest depth. */
  MAX_NESTING = 16,
  MAX_NAME_BYTES = 4096,
  MAX_MARK = 104, /* The length of all names in st_part_names together. */

  /* Field numbers of TrackEvent. */
  EVENT_DEBUG_ANNOTATIONS = ST_FIELD_TRACK_EVENT_DEBUG_ANNOTATIONS,
  EVENT_FLOW_IDS = ST_FIELD_TRACK_EVENT_FLOW_IDS,
  EVENT_TERMINATING_FLOW_IDS = ST_FIELD_TRACK_EVENT_TERMINATING_FLOW_IDS,
};

struct argument {
  PyObject* name; /* The name of the argument, a str. */
  /* A reference that has to be released: the name, if add_argument() made it.
   * Otherwise NULL. */
  PyObject* release;
  PyObject* value;
  struct converted_argument converted;
};

/* An event that is being recorded, with its converted values. */
struct event {
  const struct event_request* request;
  PyObject* name; /* The event's name, a str, or NULL. */
  const struct st_track* track;
  uint64_t track_uuid;
  /* The position of the encoded flows and the encoded counter value in the
   * scratch. */
  size_t fields_offset, fields_size;
  struct argument* arguments;
  unsigned argument_count, argument_capacity, arguments_left_out;
  /* The wrong parts of the event, as bits of enum event_part. */
  unsigned left_out;
  /* A copy of the dict `args`.  The event uses the copy because a repr may
   * change the dict. */
  PyObject* more_arguments;
};

/* From here on: conversion of the arguments, which may run Python code. */

/* Converts a key of the dict `args` to text.  The key may be any object.  If
 * its __str__ fails, the text is "?". */
static PyObject* name_as_text(PyObject* name) {
  PyObject* text = PyObject_Str(name);
  if (text)
    return text;
  swallow_error();
  return PyUnicode_FromString("?");
}

static void add_argument(struct thread_state* t, struct event* e,
                         PyObject* name, PyObject* value) {
  if (e->argument_count == e->argument_capacity) {
    e->arguments_left_out++;
    st_argument_errors++;
    return;
  }
  PyObject* made = PyUnicode_Check(name) ? NULL : name_as_text(name);
  if (!made && !PyUnicode_Check(name)) {
    swallow_error();
    return;
  }
  struct argument* a = &e->arguments[e->argument_count++];
  a->name = made ? made : name;
  a->release = made;
  a->value = value;
  convert_argument(&t->scratch, value, &a->converted);
}

static void convert_arguments(struct thread_state* t, struct event* e) {
  const struct event_request* r = e->request;
  Py_ssize_t named = r->argument_names ? PyTuple_Size(r->argument_names) : 0;
  for (Py_ssize_t i = 0; i < named; i++) {
    PyObject* name = PyTuple_GET_ITEM(r->argument_names, i);
    if (i < 32 ? r->skip_names & (1u << i) : is_event_option(name))
      continue;
    if (r->template && r->argument_values[i] == Py_None)
      continue;
    add_argument(t, e, name, r->argument_values[i]);
  }
  PyObject *name, *value;
  Py_ssize_t pos = 0;
  while (e->more_arguments &&
         PyDict_Next(e->more_arguments, &pos, &name, &value))
    add_argument(t, e, name, value);
}

/* Converts a number to double.  An int that is too large becomes infinity. */
static bool as_double(PyObject* value, double* out) {
  *out = PyFloat_AsDouble(value);
  if (*out != -1.0 || !PyErr_Occurred())
    return true;
  if (!PyLong_Check(value) || !PyErr_ExceptionMatches(PyExc_OverflowError))
    return false;
  PyErr_Clear();
  int sign; /* The sign of the large int, -1 or 1. */
  PyLong_AsLongLongAndOverflow(value, &sign);
  *out = sign < 0 ? -Py_HUGE_VAL : Py_HUGE_VAL;
  return true;
}

/* Appends the value of a counter.  A value that is an int or has __index__ is
 * written as an int, any other as a double. */
static bool append_counter_value(struct bytes_builder* out, PyObject* value) {
  PyObject* number =
      PyIndex_Check(value) ? PyNumber_Index(value) : Py_NewRef(value);
  if (!number)
    return false;
  int overflow = 1;
  long long integer = 0;
  double real = 0;
  if (PyLong_Check(number))
    integer = PyLong_AsLongLongAndOverflow(number, &overflow);
  bool ok = !overflow || as_double(number, &real);
  Py_DECREF(number);
  uint8_t* p = ok ? builder_room(out, 16) : NULL;
  if (!p)
    return false;
  p = overflow ? st_track_event_put_double_counter_value(p, real)
               : st_track_event_put_counter_value(p, integer);
  builder_set_end(out, p);
  return true;
}

static void convert_flows(struct event* e, struct bytes_builder* out,
                          enum event_part part, uint32_t field,
                          PyObject* flows) {
  size_t before = out->size;
  if (!flows || append_flows(out, field, flows))
    return;
  swallow_error();
  out->size = before;
  e->left_out |= 1u << part;
}

/* Converts the flows and the counter value into the scratch.  Returns false if
 * the counter value cannot be converted; then no event is written. A conversion
 * may record other events. Their arguments are appended to the scratch and then
 * removed again, so each field is appended directly after its conversion. */
static bool convert_fields(struct thread_state* t, struct event* e) {
  const struct event_request* r = e->request;
  struct bytes_builder* out = &t->scratch;
  e->fields_offset = out->size;
  convert_flows(e, out, PART_FLOW, EVENT_FLOW_IDS, r->flow);
  convert_flows(e, out, PART_TERMINATING_FLOW, EVENT_TERMINATING_FLOW_IDS,
                r->terminating_flow);
  bool ok = !r->value || append_counter_value(out, r->value);
  if (!ok)
    swallow_error();
  e->fields_size = out->size - e->fields_offset;
  return ok;
}

/* Whether the event's track does not depend on the running task. */
static bool has_given_track(const struct event_request* r) {
  return r->track || r->track_uuid || r->on_thread_track;
}

static void choose_track(struct thread_state* t, struct event* e) {
  const struct event_request* r = e->request;
  TrackObject* track = r->track;
  if (!has_given_track(r))
    track = t->task_track;
  e->track = track ? track_resolve(track) : NULL;
  e->track_uuid = e->track ? e->track->uuid : r->track_uuid;
  if (e->track_uuid == t->track.uuid) {
    e->track = NULL;
    e->track_uuid = 0;
  }
}

/* From here on: encoding of the event, which runs no Python code. */

static uint32_t category_iid(struct thread_state* t, struct thread_sequence* s,
                             CategoryObject* category) {
  uint32_t index = category->index, epoch = s->core.epoch;
  if (index >= s->category_capacity) {
    uint32_t capacity = (index + 16) & ~15u;
    void* grown =
        PyMem_RawRealloc(s->categories, capacity * sizeof *s->categories);
    if (!grown)
      return 0;
    s->categories = grown;
    memset(s->categories + s->category_capacity, 0,
           (capacity - s->category_capacity) * sizeof *s->categories);
    s->category_capacity = capacity;
  }
  if (s->categories[index].epoch != epoch) {
    s->categories[index].iid =
        intern_string(t, s, ST_INTERN_CATEGORY, NULL, category->name);
    s->categories[index].epoch = epoch;
  }
  return s->categories[index].iid;
}

static uint32_t code_name_iid(struct thread_state* t, struct thread_sequence* s,
                              PyObject* code) {
  uint32_t iid = st_identity_find(&s->codes, s->core.epoch, code);
  if (iid)
    return iid;
  iid = intern_string(t, s, ST_INTERN_EVENT_NAME, NULL,
                      ((PyCodeObject*)code)->co_qualname);
  if (iid)
    identity_put(t, &s->codes, s->core.epoch, code, iid);
  return iid;
}

/* Appends one argument as debug_annotations { name_iid or name, value }. */
static void append_annotation(struct thread_state* t, struct thread_sequence* s,
                              const struct argument* a) {
  struct st_identity_cache* cache = a->release ? NULL : &s->argument_names;
  uint32_t iid = intern_string(t, s, ST_INTERN_ANNOTATION_NAME, cache, a->name);
  struct bytes_builder* out = &t->scratch;
  uint8_t* p = builder_room(out, 32);
  if (!p)
    return;
  *p++ = EVENT_DEBUG_ANNOTATIONS << 3 | ST_WIRE_DELIMITED;
  size_t size_field = (size_t)(p - out->data);
  /* If a plain value is long, the size field of one byte is enlarged below. */
  p += iid && !a->converted.size ? 1 : ST_SIZE_FIELD;
  size_t start = (size_t)(p - out->data);
  if (iid)
    p = st_debug_annotation_put_name_iid(p, iid);
  builder_set_end(out, p);
  if (!iid) {
    Py_ssize_t size;
    PyObject* release;
    const char* name = utf8_of(a->name, &size, &release);
    if (size > MAX_NAME_BYTES)
      size = (Py_ssize_t)cut_utf8(name, MAX_NAME_BYTES);
    p = builder_room(out, (size_t)size + 16);
    if (p && name)
      builder_set_end(out, st_debug_annotation_put_name(p, name, (size_t)size));
    Py_XDECREF(release);
  }
  if (a->converted.size) {
    p = builder_room(out, a->converted.size);
    if (p) {
      memcpy(p, out->data + a->converted.offset, a->converted.size);
      out->size += a->converted.size;
    }
  } else {
    append_plain_value(out, a->value);
  }
  size_t size = out->size - start;
  if (start - size_field == ST_SIZE_FIELD) {
    st_put_size_field(out->data + size_field, (uint32_t)size);
  } else if (size < 0x80) {
    out->data[size_field] = (uint8_t)size;
  } else {
    /* A long string has to be moved, because its size field needs four
     * bytes. */
    if (!builder_room(out, 3))
      return;
    memmove(out->data + start + 3, out->data + start, size);
    st_put_size_field(out->data + size_field, (uint32_t)size);
    out->size += 3;
  }
}

/* Appends the annotation { name "...", string_value }, which marks an event as
 * incomplete. */
static void append_mark(struct bytes_builder* out, const char* text) {
  uint8_t fields[MAX_MARK + 24];
  uint8_t* f = st_debug_annotation_put_name(fields, "...", 3);
  f = st_debug_annotation_put_string_value(f, text, strlen(text));
  uint8_t* p = builder_room(out, sizeof fields + 8);
  if (p)
    builder_set_end(out, st_track_event_put_debug_annotations(
                             p, fields, (size_t)(f - fields)));
}

static void append_truncated(struct bytes_builder* out, unsigned more) {
  char text[MAX_MARK];
  snprintf(text, sizeof text, "[truncated, %u more]", more);
  append_mark(out, text);
}

/* Appends an annotation that names the wrong parts of an event, such as "[left
 * out: timestamp, args]". */
static void append_left_out(struct bytes_builder* out, unsigned parts) {
  char text[MAX_MARK];
  int size = 0;
  for (int i = 0; i < EVENT_PARTS; i++) {
    if (parts & (1u << i))
      size += snprintf(text + size, sizeof text - (size_t)size, "%s%s",
                       size ? ", " : "[left out: ", st_part_names[i]);
  }
  snprintf(text + size, sizeof text - (size_t)size, "]");
  append_mark(out, text);
}

static void append_inline_category(struct thread_state* t,
                                   CategoryObject* category) {
  Py_ssize_t size;
  PyObject* release;
  const char* data = utf8_of(category->name, &size, &release);
  uint8_t* p = data ? builder_room(&t->scratch, (size_t)size + 16) : NULL;
  if (p)
    builder_set_end(&t->scratch,
                    st_track_event_put_categories(p, data, (size_t)size));
  Py_XDECREF(release);
}

/* Appends the converted flows and the converted counter value. */
static void append_fields(struct thread_state* t, const struct event* e) {
  uint64_t thread_time_us = e->request->thread_time_us;
  uint8_t* p = builder_room(&t->scratch, e->fields_size + 16);
  if (!p)
    return;
  memcpy(p, t->scratch.data + e->fields_offset, e->fields_size);
  p += e->fields_size;
  builder_set_end(&t->scratch,
                  thread_time_us ? st_put_thread_time(p, thread_time_us) : p);
}

static void append_name(struct thread_state* t, struct thread_sequence* s,
                        const struct event* e, struct st_event* out) {
  const struct event_request* r = e->request;
  if (e->name)
    out->name_iid =
        intern_string(t, s, ST_INTERN_EVENT_NAME, &s->names, e->name);
  else if (r->code)
    out->name_iid = code_name_iid(t, s, r->code);
  if (r->code)
    append_source_location(t, code_location_iid(t, s, r->code));
}

static bool write_to(struct thread_state* t, struct thread_sequence* s,
                     const struct event* e, struct st_event* out) {
  const struct event_request* r = e->request;
  size_t base = t->scratch.size;
  t->interned.size = 0;
  bool has_category =
      r->category && r->type != ST_SLICE_END && r->type != ST_COUNTER;
  out->category_iid = has_category ? category_iid(t, s, r->category) : 0;
  if (has_category && !out->category_iid)
    append_inline_category(t, r->category);
  out->name_iid = 0;
  append_name(t, s, e, out);
  if (r->log_message)
    append_log_message(t, s, r->log_message);
  append_fields(t, e);
  for (unsigned i = 0; i < e->argument_count; i++)
    append_annotation(t, s, &e->arguments[i]);
  if (e->arguments_left_out)
    append_truncated(&t->scratch, e->arguments_left_out);
  if (e->left_out)
    append_left_out(&t->scratch, e->left_out);
  out->fields = t->scratch.data + base;
  out->fields_size = t->scratch.size - base;
  out->interned = t->interned.data;
  out->interned_size = t->interned.size;
  bool ok = st_sequence_write(&s->core, out);
  if (ok && r->template)
    remember_template(s, r->template);
  else if (ok && r->argument_names && !r->more_arguments)
    remember_keywords(t, s, r->argument_names);
  t->scratch.size = base;
  return ok;
}

/* Makes the sequence ready for an event: announces the incremental state in the
 * chunk, and describes the event's track there, unless the chunk has both.  If
 * the description fills the chunk, both are repeated in the next chunk. */
static bool prepare(struct thread_sequence* s, const struct event* e,
                    uint64_t now) {
  for (int round = 0; round < 3; round++) {
    if (!st_sequence_prepare(&s->core, now, ST_EVENT_ROOM))
      return false;
    if (e->track)
      st_sequence_declare_track(&s->core, e->track);
    if (st_sequence_is_current(&s->core))
      return true;
  }
  return st_sequence_prepare(&s->core, now, ST_EVENT_ROOM);
}

/* Makes the sequence ready for an event.  If there are so many threads that
 * they may soon hold all chunks, takes back the chunks of idle threads. */
static bool prepare_among_threads(struct thread_sequence* s,
                                  const struct event* e, uint64_t now) {
  if (LIKELY(st_sequence_is_current(&s->core)))
    return prepare(s, e, now);
  bool ready = prepare(s, e, now);
  struct st_arbiter* arbiter = s->core.writer.arbiter;
  if (LIKELY(!st_arbiter_is_crowded(arbiter)))
    return ready;
  thread_states_give_back(s->slot);
  arbiter->sink->flush(arbiter->sink_self);
  return ready || prepare(s, e, now);
}

static bool emit_to_slot(struct thread_state* t, int slot,
                         const struct event* e, struct st_event* out) {
  uint32_t since = e->request->since;
  if (since && !st_slot_runs_since(slot, since))
    return false;
  struct thread_sequence* s = thread_state_sequence(t, slot);
  if (!s)
    return false;
  uint64_t now = st_fast_now();
  if (!out->explicit_timestamp)
    out->timestamp = now;
  if (!prepare_among_threads(s, e, now)) {
    s->core.events_lost++;
    if (out->type == ST_SLICE_END)
      st_sequence_owe_end(&s->core, out->timestamp, out->track_uuid);
    return false;
  }
  if (!s->filter_annotations)
    return write_to(t, s, e, out);
  struct event without = *e;
  without.argument_count = without.arguments_left_out = without.left_out = 0;
  return write_to(t, s, &without, out);
}

static PyObject* name_as_str(PyObject* name) {
  if (!name || PyUnicode_Check(name))
    return Py_XNewRef(name);
  PyObject* text = PyObject_Str(name);
  if (!text)
    swallow_error();
  return text;
}

/* Returns the name of the event as text if it has no interned id and must be
 * written inline. */
static const char* inline_name(const struct event* e, struct st_event* out,
                               PyObject** release) {
  PyObject* name = e->name;
  if (!name && e->request->code)
    name = ((PyCodeObject*)e->request->code)->co_qualname;
  if (!name)
    return NULL;
  Py_ssize_t size;
  const char* data = utf8_of(name, &size, release);
  if (size > MAX_NAME_BYTES)
    size = (Py_ssize_t)cut_utf8(data, MAX_NAME_BYTES);
  out->name_size = (size_t)size;
  return data;
}

/* Writes the packets of an event whose arguments were converted.  Runs no
 * Python code. */
static uint32_t write_to_slots(struct thread_state* t, const struct event* e,
                               uint32_t mask) {
  const struct event_request* r = e->request;
  struct st_event out = {.type = r->type,
                         .timestamp = r->timestamp,
                         .explicit_timestamp = r->has_timestamp,
                         .track_uuid = e->track_uuid};
  PyObject* release = NULL;
  out.name = inline_name(e, &out, &release);
  uint32_t written = 0;
  t->busy = true;
  for (int slot = 0; slot < MAX_INSTANCES; slot++) {
    if ((mask & (1u << slot)) && emit_to_slot(t, slot, e, &out))
      written |= 1u << slot;
  }
  t->busy = false;
  Py_XDECREF(release);
  return written;
}

static unsigned count_arguments(const struct thread_state* t,
                                const struct event* e) {
  const struct event_request* r = e->request;
  Py_ssize_t count = r->argument_names ? PyTuple_Size(r->argument_names) : 0;
  if (e->more_arguments)
    count += PyDict_Size(e->more_arguments);
  if (t->converting >= MAX_NESTING)
    return 0;
  return count < MAX_ARGUMENTS ? (unsigned)count : MAX_ARGUMENTS;
}

static uint32_t emit(const struct event_request* r, uint32_t mask) {
  struct thread_state* t = thread_state_get();
  if (!t || t->busy)
    return 0;
  /* The exception that the program is handling, if there is one. */
  PyObject *error, *error_value, *traceback;
  PyErr_Fetch(&error, &error_value, &traceback);
  /* An event on a Track object needs no task, but the fast path of the next
   * event does (ready_thread). */
  if ((r->track || !has_given_track(r)) && context_changed(t))
    thread_state_refresh_task(t);
  thread_state_refresh_name(t, mask);
  size_t base = t->scratch.size;
  struct event e = {.request = r, .left_out = r->left_out};
  e.name = name_as_str(r->name);
  if (r->more_arguments)
    e.more_arguments = PyDict_Copy(r->more_arguments);
  e.argument_capacity = count_arguments(t, &e);
  struct argument arguments[e.argument_capacity + 1];
  e.arguments = arguments;
  t->converting++;
  convert_arguments(t, &e);
  bool converted = convert_fields(t, &e);
  t->converting--;
  uint32_t written = 0;
  if (converted) {
    choose_track(t, &e);
    written = write_to_slots(t, &e, mask);
  }
  t->scratch.size = base;
  thread_state_release_discarded(t);
  for (unsigned i = 0; i < e.argument_count; i++)
    Py_XDECREF(arguments[i].release);
  Py_XDECREF(e.more_arguments);
  Py_XDECREF(e.name);
  PyErr_Restore(error, error_value, traceback);
  return written;
}

uint32_t st_emit(const struct event_request* r, uint32_t mask) {
  st_own.events_underway++;
  uint32_t written = emit(r, mask);
  st_own.events_underway--;
  return written;
}

/* The argument names of an END with an exception: the tuple ("exception",). */
static PyObject* exception_names;

void st_emit_raised_end(struct event_request* r, uint32_t mask,
                        PyObject* type) {
  PyObject *error, *error_value, *traceback;
  PyErr_Fetch(&error, &error_value, &traceback);
  PyObject* name = PyType_GetQualName((PyTypeObject*)type);
  if (!name)
    swallow_error();
  r->type = ST_SLICE_END;
  r->argument_names = name ? exception_names : NULL;
  r->argument_values = &name;
  st_emit(r, mask);
  Py_XDECREF(name);
  PyErr_Restore(error, error_value, traceback);
}

static PyObject* in_event(PyObject* Py_UNUSED(module),
                          PyObject* Py_UNUSED(unused)) {
  return PyBool_FromLong(st_own.events_underway != 0);
}

static PyMethodDef kFunctions[] = {
    {"in_event", in_event, METH_NOARGS,
     "in_event()\n--\n\nReturn whether the calling thread is recording an "
     "event, as in the repr of an argument."},
    {NULL, NULL, 0, NULL}};

ST_BIND_PART(emit) {
  exception_names = Py_BuildValue("(s)", "exception");
  if (!exception_names)
    return -1;
  return PyModule_AddFunctions(module, kFunctions);
}
