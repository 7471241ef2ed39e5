#include "bind/track_event/emit_plain.h"

#include "bind/common/small_int.h"
#include "bind/common/text.h"
#include "bind/track_event/annotations.h"
#include "bind/track_event/emit_fast.h"
#include "bind/track_event/event_options.h"
#include "bind/track_event/flow.h"
#include "core/fields.h"
#include "core/setters.h"

enum {
  FIELD_DEBUG_ANNOTATIONS = 4 << 3 | ST_WIRE_DELIMITED,
  FIELD_NAME_IID = 1 << 3,
  FIELD_BOOL = 2 << 3,
  FIELD_INT = 4 << 3,
  FIELD_DOUBLE = 5 << 3 | ST_WIRE_FIXED64,
  FIELD_STRING = 6 << 3 | ST_WIRE_DELIMITED,

  /* The value SEQ_NEEDS_INCREMENTAL_STATE of TracePacket.sequence_flags. */
  NEEDS_STATE = 2,

  /* The size of each length field in a small packet, which has at most 127
   * bytes. */
  SMALL = 1,
  WIDE = 2,
  MAX_PACKET = 127,
  MAX_WIDE_PACKET = (1 << 14) - 1,
  /* The largest size of an argument's value with its tag.  Strings may be
   * larger. */
  MAX_FIXED_VALUE = 16,
  MAX_FLOW_FIELD = 11, /* The largest size of a flow: a tag and a fixed64. */
  /* The largest size of an event before its name, options and arguments. */
  MAX_WIDE_HEAD = 48,
};

static inline void put_size(uint8_t* p, size_t size, int size_bytes) {
  p[0] = (uint8_t)size;
  if (size_bytes == WIDE) {
    p[0] |= 0x80;
    p[1] = (uint8_t)(size >> 7);
  }
}

static ALWAYS_INLINE uint8_t* put_string(uint8_t* p, const uint8_t* limit,
                                         PyObject* value, int size_bytes) {
  Py_ssize_t size;
  const char* data = strict_utf8(value, &size);
  if (!data) {
    PyErr_Clear();
    return NULL;
  }
  if (size > limit - p - 1 - size_bytes || size > MAX_ARGUMENT_BYTES)
    return NULL;
  *p++ = FIELD_STRING;
  put_size(p, (size_t)size, size_bytes);
  return st_put_text(p + size_bytes, data, (size_t)size);
}

/* Converts an int.  Returns false if it exceeds int64. */
RARE static bool large_int(PyObject* value, uint64_t* out) {
  int overflow;
  *out = (uint64_t)PyLong_AsLongLongAndOverflow(value, &overflow);
  return !overflow;
}

/* Encodes a value.  Returns NULL if the value is not plain, or if it does not
 * fit. */
static ALWAYS_INLINE uint8_t* put_value(uint8_t* p, const uint8_t* limit,
                                        PyObject* value, int size_bytes) {
  if (PyUnicode_CheckExact(value))
    return put_string(p, limit, value, size_bytes);
  if (limit - p < MAX_FIXED_VALUE)
    return NULL;
  if (PyLong_CheckExact(value)) {
    uint64_t integer;
    if (!small_int(value, &integer) && !large_int(value, &integer))
      return NULL;
    *p++ = FIELD_INT;
    return st_put_varint(p, integer);
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

static ALWAYS_INLINE uint8_t* put_argument(uint8_t* p, const uint8_t* limit,
                                           uint32_t name_iid, PyObject* value,
                                           int size_bytes) {
  if (limit - p < 8 + size_bytes)
    return NULL;
  *p++ = FIELD_DEBUG_ANNOTATIONS;
  uint8_t* size = p;
  p += size_bytes;
  *p++ = FIELD_NAME_IID;
  p = st_put_varint(p, name_iid);
  p = put_value(p, limit, value, size_bytes);
  if (!p)
    return NULL;
  put_size(size, (size_t)(p - size - size_bytes), size_bytes);
  return p;
}

uint8_t* put_plain_argument(uint8_t* p, const uint8_t* limit, uint32_t name_iid,
                            PyObject* value) {
  if (limit - p > MAX_PACKET)
    limit = p + MAX_PACKET;
  return put_argument(p, limit, name_iid, value, SMALL);
}

uint8_t* put_plain_flow(uint8_t* p, const uint8_t* limit, enum event_part part,
                        PyObject* flow) {
  uint64_t id;
  if (limit - p < MAX_FLOW_FIELD || !single_flow(flow, &id))
    return NULL;
  return st_put_fixed64_field(p,
                              part == PART_FLOW
                                  ? ST_FIELD_TRACK_EVENT_FLOW_IDS
                                  : ST_FIELD_TRACK_EVENT_TERMINATING_FLOW_IDS,
                              id);
}

/* Encodes arguments and flows.  The option `track` is not encoded here: the
 * event already has the id of the track. */
static ALWAYS_INLINE uint8_t* put_keywords(uint8_t* p, const uint8_t* limit,
                                           const struct keyword_entry* k,
                                           PyObject* const* values,
                                           int size_bytes) {
  for (unsigned i = 0; p && i < k->count; i++) {
    if (LIKELY(k->iids[i]))
      p = put_argument(p, limit, k->iids[i], values[i], size_bytes);
    else if (k->parts[i] != PART_TRACK && values[i] != Py_None)
      p = put_plain_flow(p, limit, (enum event_part)k->parts[i], values[i]);
  }
  return p;
}

static struct keyword_entry* keyword_slot(struct thread_sequence* s,
                                          PyObject* names) {
  return &s->keywords[st_identity_hash(names) & (KEYWORD_ENTRIES - 1)];
}

/* Stores whether the keyword at an index is an argument or an option.  Returns
 * false if the caller has to use st_emit. */
static bool find_keyword(const struct thread_sequence* s,
                         struct keyword_entry* k, Py_ssize_t index) {
  PyObject* name = PyTuple_GET_ITEM(k->names, index);
  int option = find_event_option(name);
  if (option < 0) {
    k->iids[index] = st_identity_find(&s->argument_names, s->core.epoch, name);
    return k->iids[index] != 0;
  }
  k->parts[index] = (uint8_t)option;
  if (option == PART_TRACK)
    k->track = (int8_t)index;
  return option == PART_TRACK || option == PART_FLOW ||
         option == PART_TERMINATING_FLOW;
}

void remember_keywords(struct thread_state* t, struct thread_sequence* s,
                       PyObject* names) {
  Py_ssize_t count = PyTuple_GET_SIZE(names);
  if (count > MAX_PLAIN_ARGUMENTS)
    return;
  struct keyword_entry found = {
      .names = names, .epoch = s->core.epoch, .track = -1};
  for (Py_ssize_t i = 0; i < count; i++) {
    if (!find_keyword(s, &found, i))
      return;
    if (found.track != i)
      found.count = (uint8_t)(i + 1);
  }
  struct keyword_entry* slot = keyword_slot(s, names);
  Py_INCREF(names);
  discard_later(t, slot->names);
  *slot = found;
}

/* Writes the field TrackEvent.name.  Returns NULL if it does not fit. */
RARE static uint8_t* put_name(uint8_t* p, const uint8_t* limit,
                              const struct current* now, int size_bytes) {
  if ((size_t)(limit - p) < now->name_size + 2 + (size_t)size_bytes)
    return NULL;
  p = st_put_tag(p, ST_FIELD_TRACK_EVENT_NAME, ST_WIRE_DELIMITED);
  put_size(p, now->name_size, size_bytes);
  return st_put_text(p + size_bytes, now->name, now->name_size);
}

/* Writes those fields of an event that follow `type`. */
static ALWAYS_INLINE uint8_t* put_event(uint8_t* p, const uint8_t* limit,
                                        const struct current* now,
                                        const struct keyword_entry* k,
                                        PyObject* const* values,
                                        int size_bytes) {
  p = st_put_small_ids(p, now->category_iid, now->name_iid);
  p = st_put_track(&now->sequence->core, p, now->track_uuid);
  if (UNLIKELY(now->name != NULL))
    p = put_name(p, limit, now, size_bytes);
  return p ? put_keywords(p, limit, k, values, size_bytes) : NULL;
}

/* Puts the event on the track that the caller has passed.  Returns false if
 * that track was not described yet, or if the value is no Track. */
static ALWAYS_INLINE bool use_track(struct current* now, PyObject* value) {
  if (value == Py_None)
    return true;
  if (Py_TYPE(value) != st_track_type)
    return false;
  uint64_t uuid = track_resolve((TrackObject*)value)->uuid;
  now->track_uuid = uuid == st_own.state->track.uuid ? 0 : uuid;
  return !now->track_uuid || st_sequence_has_track(&now->sequence->core, uuid);
}

/* Writes an event of more than 127 bytes and returns its size.  Returns 0, with
 * nothing written, if the event does not fit into the chunk. */
RARE static size_t write_wide(const struct current* now,
                              enum st_event_type type, uint64_t timestamp,
                              const struct keyword_entry* k,
                              PyObject* const* values) {
  struct st_sequence* s = &now->sequence->core;
  uint8_t* start = st_trace_writer_reserve_wide(&s->writer, MAX_WIDE_HEAD);
  if (!start)
    return 0;
  const uint8_t* limit = s->writer.end;
  if (limit - start > MAX_WIDE_PACKET)
    limit = start + MAX_WIDE_PACKET;
  uint8_t* p =
      st_trace_packet_put_timestamp(start, timestamp - s->last_timestamp);
  p = st_trace_packet_put_sequence_flags(p, NEEDS_STATE);
  *p++ = ST_FIELD_TRACE_PACKET_TRACK_EVENT << 3 | ST_WIRE_DELIMITED;
  uint8_t* size = p;
  p = st_track_event_put_type(p + WIDE, type);
  p = put_event(p, limit, now, k, values, WIDE);
  if (!p)
    return 0;
  s->last_timestamp = timestamp;
  st_finish_wide(s, size, p);
  return (size_t)(p - start);
}

static ALWAYS_INLINE bool write_small(const struct current* now,
                                      enum st_event_type type,
                                      uint64_t timestamp,
                                      const struct keyword_entry* k,
                                      PyObject* const* values) {
  struct st_sequence* s = &now->sequence->core;
  uint8_t* start = st_trace_writer_reserve(&s->writer, MAX_PACKET);
  if (!start)
    return false;
  uint64_t last = s->last_timestamp;
  uint8_t* size;
  uint8_t* p = st_put_small_head(s, start, type, timestamp, &size);
  p = put_event(p, start + MAX_PACKET, now, k, values, SMALL);
  if (!p) {
    /* The event was not written, so last_timestamp is restored. */
    s->last_timestamp = last;
    return false;
  }
  st_finish_small(s, size, p);
  return true;
}

/* Writes an event whose ids are known.  If `names` is NULL, the event has no
 * keywords. */
static ALWAYS_INLINE bool write_event(struct current* now,
                                      enum st_event_type type, PyObject* names,
                                      PyObject* const* values) {
  static struct keyword_entry none = {.track = -1};
  struct thread_sequence* s = now->sequence;
  struct keyword_entry* k = names ? keyword_slot(s, names) : &none;
  if (names &&
      (k->names != names || k->epoch != s->core.epoch || s->filter_annotations))
    return false;
  if (k->track >= 0 && !use_track(now, values[k->track]))
    return false;
  uint64_t timestamp = st_fast_now();
  if (!st_sequence_is_current(&s->core) || timestamp < s->core.last_timestamp)
    return false;
  if (!k->wide && write_small(now, type, timestamp, k, values))
    return true;
  size_t size = write_wide(now, type, timestamp, k, values);
  if (names)
    k->wide = size > MAX_PACKET;
  return size != 0;
}

typedef uint32_t emitter(enum st_event_type type, CategoryObject* category,
                         PyObject* name, uint32_t mask, PyObject* names,
                         PyObject* const* values);

/* Calls `emit` for one slot after the other, until it fails.  The functions
 * below have no loop of their own: a loop would take registers, and so make
 * events of a single session slower. */
RARE static uint32_t in_each_slot(emitter* emit, enum st_event_type type,
                                  CategoryObject* category, PyObject* name,
                                  uint32_t mask, PyObject* names,
                                  PyObject* const* values) {
  while (mask && !emit(type, category, name, mask & -mask, names, values))
    mask &= mask - 1;
  return mask;
}

uint32_t emit_plain(enum st_event_type type, CategoryObject* category,
                    PyObject* name, uint32_t mask, PyObject* names,
                    PyObject* const* values) {
  if (UNLIKELY(mask & (mask - 1)))
    return in_each_slot(emit_plain, type, category, name, mask, names, values);
  struct thread_state* t = ready_thread();
  struct current now;
  bool written = t &&
                 find_current(&now, t, __builtin_ctz(mask), category, name) &&
                 write_event(&now, type, names, values);
  return written ? 0 : mask;
}

/* Finds the id of a name by the name's value.  At its first use a name is
 * written inline, because many names are never used again.  At the second use
 * of a name this function returns false, and st_emit interns the name. */
static bool find_name(struct current* now, PyObject* name) {
  struct thread_sequence* s = now->sequence;
  Py_ssize_t size;
  const char* text = strict_utf8(name, &size);
  if (!text || size > ST_INTERN_MAX_LENGTH) {
    PyErr_Clear();
    return false;
  }
  uint32_t hash;
  now->name_iid = st_intern_find(&s->core.interned, ST_INTERN_EVENT_NAME, text,
                                 (size_t)size, &hash);
  if (now->name_iid)
    return true;
  uint32_t* used = &s->inline_names[hash % INLINE_NAME_ENTRIES];
  if (*used == (hash ^ s->core.epoch))
    return false;
  *used = hash ^ s->core.epoch;
  now->name = text;
  now->name_size = (size_t)size;
  return true;
}

uint32_t emit_new_name(enum st_event_type type, CategoryObject* category,
                       PyObject* name, uint32_t mask, PyObject* names,
                       PyObject* const* values) {
  if (!PyUnicode_CheckExact(name) || PyUnicode_CHECK_INTERNED(name))
    return mask;
  if (UNLIKELY(mask & (mask - 1)))
    return in_each_slot(emit_new_name, type, category, name, mask, names,
                        values);
  struct thread_state* t = ready_thread();
  struct current now;
  if (!t || !find_current(&now, t, __builtin_ctz(mask), category, NULL))
    return mask;
  now.category_iid = known_category(now.sequence, category);
  bool written = now.category_iid && find_name(&now, name) &&
                 write_event(&now, type, names, values);
  return written ? 0 : mask;
}
