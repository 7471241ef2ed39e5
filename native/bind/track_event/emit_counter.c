#include "bind/track_event/emit_counter.h"

#include "bind/common/small_int.h"
#include "bind/track_event/emit_fast.h"
#include "core/setters.h"

static struct counter_entry* counter_slot(struct thread_sequence* s,
                                          PyObject* name) {
  return &s->counters[st_identity_hash(name) & (COUNTER_ENTRIES - 1)];
}

/* Encodes an exact int or float.  Returns NULL for a value of another type. */
static uint8_t* put_number(uint8_t* p, PyObject* value) {
  if (PyFloat_CheckExact(value))
    return st_track_event_put_double_counter_value(p, PyFloat_AS_DOUBLE(value));
  uint64_t small;
  if (small_int(value, &small))
    return st_track_event_put_counter_value(p, (int64_t)small);
  if (!PyLong_CheckExact(value))
    return NULL;
  int overflow;
  long long integer = PyLong_AsLongLongAndOverflow(value, &overflow);
  return overflow ? NULL : st_track_event_put_counter_value(p, integer);
}

static bool write_value(struct st_sequence* s, uint64_t timestamp,
                        const struct st_event_block* block, PyObject* value) {
  uint64_t last = s->last_timestamp;
  if (!st_sequence_is_current(s) || timestamp < last)
    return false;
  uint8_t* p = st_trace_writer_reserve(&s->writer, ST_SMALL_EVENT);
  if (!p)
    return false;
  uint8_t* start;
  p = put_number(st_put_block(s, p, timestamp, block, &start), value);
  if (!p) {
    /* The event was not written, so last_timestamp is restored. */
    s->last_timestamp = last;
    return false;
  }
  st_finish_block(s, start, p);
  return true;
}

uint32_t emit_counter(PyObject* name, PyObject* value, uint32_t mask) {
  struct thread_state* t = st_own.state;
  if (UNLIKELY(!t || t->busy))
    return mask;
  uint64_t timestamp = st_fast_now();
  do {
    int slot = __builtin_ctz(mask);
    struct thread_sequence* s = t->sequences[slot];
    if (UNLIKELY(!s || s->generation != st_slot_running(slot)))
      break;
    const struct counter_entry* c = counter_slot(s, name);
    if (c->name != name || c->epoch != s->core.epoch ||
        !write_value(&s->core, timestamp, &c->block, value))
      break;
    mask &= mask - 1;
  } while (UNLIKELY(mask));
  return mask;
}

/* Encodes a counter event without its value. */
static struct st_event_block counter_block(uint64_t track_uuid) {
  struct st_event_block block = st_end_block;
  block.bytes[ST_BLOCK_TYPE] = ST_COUNTER;
  uint8_t* end = st_put_track_uuid(block.bytes + block.size, track_uuid);
  block.size = (uint8_t)(end - block.bytes);
  return block;
}

void remember_counter(PyObject* name, uint64_t track_uuid, uint32_t mask) {
  struct thread_state* t = st_own.state;
  for (; t && mask; mask &= mask - 1) {
    struct thread_sequence* s = t->sequences[__builtin_ctz(mask)];
    if (!s || !st_sequence_has_track(&s->core, track_uuid))
      continue;
    struct counter_entry* slot = counter_slot(s, name);
    PyObject* replaced = slot->name;
    *slot = (struct counter_entry){Py_NewRef(name), s->core.epoch,
                                   counter_block(track_uuid)};
    Py_XDECREF(replaced);
  }
}
