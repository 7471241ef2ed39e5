#include "bind/track_event/emit_plain.h"

#include "bind/track_event/emit_fast.h"
#include "core/wire.h"

enum {
  FIELD_DEBUG_ANNOTATIONS = 4 << 3 | ST_WIRE_DELIMITED,
  FIELD_NAME_IID = 1 << 3,
  FIELD_BOOL = 2 << 3,
  FIELD_INT = 4 << 3,
  FIELD_DOUBLE = 5 << 3 | ST_WIRE_FIXED64,
  FIELD_STRING = 6 << 3 | ST_WIRE_DELIMITED,

  MAX_PACKET = 127,
  /* The largest size of a value other than a string, with its tag. */
  MAX_FIXED_VALUE = 16,
};

static uint8_t* put_string(uint8_t* p, const uint8_t* limit, PyObject* value) {
  Py_ssize_t size;
  const char* data = PyUnicode_AsUTF8AndSize(value, &size);
  if (!data) {
    PyErr_Clear();
    return NULL;
  }
  if (size > limit - p - 2 || size > MAX_PACKET)
    return NULL;
  *p++ = FIELD_STRING;
  *p++ = (uint8_t)size;
  memcpy(p, data, (size_t)size);
  return p + size;
}

/* Encodes a value.  Returns NULL if it is not plain, or does not fit. */
static uint8_t* put_value(uint8_t* p, const uint8_t* limit, PyObject* value) {
  if (PyUnicode_CheckExact(value))
    return put_string(p, limit, value);
  if (limit - p < MAX_FIXED_VALUE)
    return NULL;
  if (PyLong_CheckExact(value)) {
    int overflow;
    long long integer = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow)
      return NULL;
    *p++ = FIELD_INT;
    return st_put_varint(p, (uint64_t)integer);
  }
  if (PyFloat_CheckExact(value)) {
    double number = PyFloat_AS_DOUBLE(value);
    *p++ = FIELD_DOUBLE;
    memcpy(p, &number, sizeof number);
    return p + sizeof number;
  }
  if (!PyBool_Check(value))
    return NULL;
  *p++ = FIELD_BOOL;
  *p++ = value == Py_True;
  return p;
}

static inline uint8_t* put_argument(uint8_t* p, const uint8_t* limit,
                                    uint32_t name_iid, PyObject* value) {
  if (limit - p < 8)
    return NULL;
  *p++ = FIELD_DEBUG_ANNOTATIONS;
  uint8_t* size = p++;
  *p++ = FIELD_NAME_IID;
  p = st_put_varint(p, name_iid);
  p = put_value(p, limit, value);
  if (!p || p - size > MAX_PACKET)
    return NULL;
  *size = (uint8_t)(p - size - 1);
  return p;
}

uint8_t* put_plain_argument(uint8_t* p, const uint8_t* limit, uint32_t name_iid,
                            PyObject* value) {
  return put_argument(p, limit, name_iid, value);
}

static uint8_t* put_annotations(uint8_t* p, const uint8_t* limit,
                                const struct keyword_entry* k,
                                PyObject* const* values) {
  for (unsigned i = 0; p && i < k->count; i++)
    p = put_argument(p, limit, k->iids[i], values[i]);
  return p;
}

static struct keyword_entry* keyword_slot(struct thread_sequence* s,
                                          PyObject* names) {
  return &s->keywords[st_identity_hash(names) & (KEYWORD_ENTRIES - 1)];
}

void remember_keywords(struct thread_state* t, struct thread_sequence* s,
                       PyObject* names) {
  Py_ssize_t count = PyTuple_GET_SIZE(names);
  if (count > MAX_PLAIN_ARGUMENTS)
    return;
  struct keyword_entry found = {names, s->core.epoch, (uint32_t)count, {0}};
  for (Py_ssize_t i = 0; i < count; i++) {
    found.iids[i] = st_identity_find(&s->argument_names, s->core.epoch,
                                     PyTuple_GET_ITEM(names, i));
    if (!found.iids[i])
      return;
  }
  struct keyword_entry* slot = keyword_slot(s, names);
  Py_INCREF(names);
  discard_later(t, slot->names);
  *slot = found;
}

bool emit_plain(enum st_event_type type, CategoryObject* category,
                PyObject* name, uint32_t mask, PyObject* names,
                PyObject* const* values) {
  struct current now;
  if (!find_current(&now, category, name, mask))
    return false;
  struct thread_sequence* s = now.sequence;
  const struct keyword_entry* k = keyword_slot(s, names);
  if (k->names != names || k->epoch != s->core.epoch)
    return false;
  uint64_t timestamp = st_fast_now();
  uint64_t last = s->core.last_timestamp;
  if (!st_sequence_is_current(&s->core) || timestamp < last)
    return false;
  uint8_t* start = st_trace_writer_reserve(&s->core.writer, MAX_PACKET);
  if (!start || st_instances[now.slot].filter_annotations)
    return false;
  uint8_t* size;
  uint8_t* p = st_put_small_head(&s->core, start, type, timestamp, &size);
  p = st_put_small_ids(p, now.category_iid, now.name_iid, now.track_uuid);
  p = put_annotations(p, start + MAX_PACKET, k, values);
  if (!p) {
    /* Nothing was written, so the time of the last event is restored. */
    s->core.last_timestamp = last;
    return false;
  }
  st_finish_small(&s->core, size, p);
  return true;
}
