#include "bind/track_event/past_slice.h"

#include "bind/common/text.h"
#include "bind/track_event/emit.h"
#include "bind/track_event/emit_plain.h"
#include "bind/track_event/emit_template.h"
#include "bind/track_event/interning.h"
#include "bind/track_event/template_cache.h"
#include "core/fields.h"
#include "core/hot.h"
#include "core/setters.h"

enum {
  /* The largest size of a BEGIN before its values and its block. */
  MAX_HEAD = 48,
  MAX_VALUES = 144,     /* The largest size of a BEGIN's values. */
  MAX_SMALL_VALUE = 20, /* That of a bool or the id of a text. */
  MAX_TEXT_HEAD = 32,   /* That of the packet of a text, without the text. */
  /* The bytes that are copied of a short block: each block has room for them, and
   * the END overwrites those after its size. */
  SHORT_BLOCK = 16,
  /* The value SEQ_NEEDS_INCREMENTAL_STATE of TracePacket.sequence_flags. */
  NEEDS_STATE = 2,
};

/* Whether a value is a text that will come again. */
static ALWAYS_INLINE bool is_repeated(const struct st_past_slice* slice,
                                      Py_ssize_t i) {
  return slice->repeated >> i & 1;
}

/* --- fields: with as few branches as possible ------------------------------ */

/* Writes a timestamp as a difference.  One below 0.27 s takes four bytes. */
static ALWAYS_INLINE uint8_t* put_time(struct st_sequence* s, uint8_t* p,
                                       uint64_t time) {
  uint64_t difference = time - s->last_timestamp;
  s->last_timestamp = time;
  *p++ = ST_FIELD_TRACE_PACKET_TIMESTAMP << 3;
  if (UNLIKELY(difference > ST_MAX_MESSAGE_SIZE))
    return st_put_varint(p, difference);
  st_put_size_field(p, (uint32_t)difference);
  return p + ST_SIZE_FIELD;
}

/* Copies a block; in one piece, if it is as short as usual. */
static ALWAYS_INLINE uint8_t* put_block(uint8_t* p,
                                        const struct template_entry* e) {
  if (UNLIKELY(e->size > SHORT_BLOCK))
    return st_put_text(p, (const char*)e->block, e->size);
  memcpy(p, e->block, SHORT_BLOCK);
  return p + e->size;
}

/* --- values ---------------------------------------------------------------- */

/* Writes an argument whose value is a bool or the id of a text. */
static ALWAYS_INLINE uint8_t* put_small_value(uint8_t* p, const uint8_t* limit,
                                              uint32_t name_iid, uint32_t field,
                                              uint32_t value) {
  if (UNLIKELY(limit - p < MAX_SMALL_VALUE))
    return NULL;
  *p++ = ST_FIELD_TRACK_EVENT_DEBUG_ANNOTATIONS << 3 | ST_WIRE_DELIMITED;
  uint8_t* size = p++;
  p = st_debug_annotation_put_name_iid(p, name_iid);
  p = st_put_u64_field(p, field, value);
  *size = (uint8_t)(p - size - 1);
  return p;
}

/* Writes a value of a slice, which is not None. */
static ALWAYS_INLINE uint8_t* put_value(uint8_t* p, const uint8_t* limit,
                                        const struct thread_sequence* t,
                                        uint32_t name_iid,
                                        const struct st_past_slice* slice,
                                        Py_ssize_t i) {
  PyObject* value = slice->values[i];
  if (is_repeated(slice, i)) {
    uint32_t text = st_identity_find(&t->texts, t->core.epoch, value);
    if (UNLIKELY(!text))
      return NULL;
    return put_small_value(p, limit, name_iid,
                           ST_FIELD_DEBUG_ANNOTATION_STRING_VALUE_IID, text);
  }
  if (PyBool_Check(value))
    return put_small_value(p, limit, name_iid,
                           ST_FIELD_DEBUG_ANNOTATION_BOOL_VALUE,
                           value == Py_True);
  return put_plain_argument(p, limit, name_iid, value);
}

/* Returns NULL if a value is not plain, or if it or its name has no id. */
static ALWAYS_INLINE uint8_t* put_values(uint8_t* p,
                                         const struct thread_sequence* t,
                                         const struct template_entry* e,
                                         const struct st_past_slice* slice) {
  const uint8_t* limit = p + MAX_VALUES;
  for (Py_ssize_t i = 0; i < slice->count; i++) {
    if (slice->values[i] == Py_None)
      continue;
    p = e->iids[i] ? put_value(p, limit, t, e->iids[i], slice, i) : NULL;
    if (UNLIKELY(!p))
      return NULL;
  }
  return p;
}

/* --- the short path -------------------------------------------------------- */

/* Writes the BEGIN of a slice, for which there is room.  Returns false, with
 * nothing written, if a value can't be written here. */
static ALWAYS_INLINE bool put_begin(struct thread_sequence* t,
                                    const struct template_entry* e,
                                    const struct st_past_slice* slice) {
  struct st_sequence* s = &t->core;
  uint64_t last = s->last_timestamp;
  uint8_t* p = put_time(s, s->writer.cur + 2, slice->begin);
  p = st_trace_packet_put_sequence_flags(p, NEEDS_STATE);
  *p++ = ST_FIELD_TRACE_PACKET_TRACK_EVENT << 3 | ST_WIRE_DELIMITED;
  uint8_t* size = p;
  p = st_track_event_put_type(p + 2, ST_SLICE_BEGIN);
  p = put_values(p, t, e, slice);
  if (UNLIKELY(!p)) {
    s->last_timestamp = last;
    return false;
  }
  st_finish_wide(s, size, put_block(p, e));
  return true;
}

/* Writes the END of a slice, for which there is room. */
static ALWAYS_INLINE void put_end(struct st_sequence* s, uint64_t end) {
  uint8_t* start = put_time(s, s->writer.cur + 1, end);
  memcpy(start, st_end_block.bytes, ST_BLOCK_BYTES);
  st_trace_writer_commit(&s->writer, start + st_end_block.size);
  s->events_written++;
}

/* Writes a slice on the thread's own track.  Returns false, with nothing written,
 * if that needs more than the short path. */
static ALWAYS_INLINE bool write_own(const EventTemplateObject* template,
                                    const struct st_past_slice* slice,
                                    uint32_t mask) {
  struct thread_sequence* t = only_sequence(st_thread, mask);
  if (UNLIKELY(st_events_underway || !t || t->filter_annotations ||
               !t->templates))
    return false;
  struct st_sequence* s = &t->core;
  const struct template_entry* e = template_cache_entry(t->templates, template);
  if (UNLIKELY(e->number != template->number || e->epoch != s->epoch ||
               !st_sequence_is_current(s) || slice->begin < s->last_timestamp))
    return false;
  size_t room = MAX_HEAD + MAX_VALUES + e->size + ST_SMALL_EVENT;
  if (UNLIKELY(!st_trace_writer_has_room(&s->writer, room, 2) ||
               !put_begin(t, e, slice)))
    return false;
  put_end(s, slice->end);
  return true;
}

/* --- texts ----------------------------------------------------------------- */

/* Gives a text an id, and writes both, as a packet of its own.  Returns false,
 * with nothing written, if there is no room or no id. */
static bool declare_text(struct thread_state* thread, struct thread_sequence* t,
                         PyObject* text) {
  struct st_trace_writer* w = &t->core.writer;
  Py_ssize_t size;
  if (!PyUnicode_CheckExact(text) || !strict_utf8(text, &size)) {
    PyErr_Clear();
    return false;
  }
  uint8_t* p =
      size <= ST_INTERN_MAX_LENGTH
          ? st_trace_writer_reserve_wide(w, MAX_TEXT_HEAD + (size_t)size)
          : NULL;
  thread->interned.size = 0;
  if (!p ||
      !intern_string(thread, t, ST_INTERN_ANNOTATION_VALUE, &t->texts, text))
    return false;
  if (!thread->interned.size) /* Another object has the same text. */
    return true;
  p = st_trace_packet_put_sequence_flags(p, NEEDS_STATE);
  p = st_trace_packet_put_interned_data(p, thread->interned.data,
                                        thread->interned.size);
  st_trace_writer_commit_wide(w, p);
  return true;
}

/* Gives ids to those values that need one.  Returns whether there were any, and
 * all have got theirs. */
static bool declare_texts(const struct st_past_slice* slice, uint32_t mask) {
  struct thread_sequence* t = only_sequence(st_thread, mask);
  if (st_events_underway || !t || !st_sequence_is_current(&t->core))
    return false;
  bool has_any = false;
  for (Py_ssize_t i = 0; i < slice->count; i++) {
    PyObject* value = slice->values[i];
    if (!is_repeated(slice, i) || value == Py_None ||
        st_identity_find(&t->texts, t->core.epoch, value))
      continue;
    has_any = true;
    if (!declare_text(st_thread, t, value))
      return false;
  }
  return has_any;
}

/* --- all ways --------------------------------------------------------------- */

RARE static void emit_past(EventTemplateObject* template, PyObject* track,
                           const struct st_past_slice* slice, uint32_t mask) {
  if (!track && declare_texts(slice, mask) && write_own(template, slice, mask))
    return;
  struct event_request r = {.type = ST_SLICE_BEGIN,
                            .on_thread_track = !track,
                            .track = (TrackObject*)track,
                            .has_timestamp = true,
                            .is_past = true,
                            .timestamp = slice->begin};
  template_request(&r, template, slice->values, slice->count);
  emit_template_slice(&r, mask, slice->end);
}

ST_HOT void emit_past_slice(PyObject* template, PyObject* track,
                            const struct st_past_slice* slice) {
  EventTemplateObject* t = (EventTemplateObject*)template;
  uint32_t mask = category_mask(t->category);
  if (UNLIKELY(!mask))
    return;
  if (UNLIKELY(track || !write_own(t, slice, mask)))
    emit_past(t, track, slice, mask);
}
