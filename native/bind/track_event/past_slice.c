#include "bind/track_event/past_slice.h"

#include "bind/common/text.h"
#include "bind/track_event/emit.h"
#include "bind/track_event/emit_plain.h"
#include "bind/track_event/emit_template.h"
#include "bind/track_event/interning.h"
#include "bind/track_event/past_memo.h"
#include "bind/track_event/template_cache.h"
#include "core/fields.h"
#include "core/hot.h"
#include "core/setters.h"

enum {
  /* The largest size of a BEGIN before its values and its block. */
  MAX_HEAD = 48,
  MAX_VALUES = 144,     /* The largest size of a BEGIN's values. */
  MAX_SMALL_VALUE = 20, /* That of the id of a text. */
  MAX_TEXT_HEAD = 32,   /* That of the packet of a text, without the text. */
  /* The value SEQ_NEEDS_INCREMENTAL_STATE of TracePacket.sequence_flags. */
  NEEDS_STATE = 2,
};

/* Whether a value is a text that will come again. */
static bool is_repeated_text(const struct st_past_slice* slice, Py_ssize_t i) {
  return slice->repeated && PyUnicode_Check(slice->values[i]);
}

/* --- encoding -------------------------------------------------------------- */

/* Writes a timestamp as a difference.  One below 0.27 s takes four bytes. */
static uint8_t* put_time(struct st_sequence* s, uint8_t* p, uint64_t time) {
  uint64_t difference = time - s->last_timestamp;
  s->last_timestamp = time;
  *p++ = ST_FIELD_TRACE_PACKET_TIMESTAMP << 3;
  if (UNLIKELY(difference > ST_MAX_MESSAGE_SIZE))
    return st_put_varint(p, difference);
  st_put_size_field(p, (uint32_t)difference);
  return p + ST_SIZE_FIELD;
}

/* Writes an argument whose value is a text with an id. */
static uint8_t* put_text_iid(uint8_t* p, const uint8_t* limit,
                             uint32_t name_iid, uint32_t text) {
  if (UNLIKELY(!text || limit - p < MAX_SMALL_VALUE))
    return NULL;
  *p++ = ST_FIELD_TRACK_EVENT_DEBUG_ANNOTATIONS << 3 | ST_WIRE_DELIMITED;
  uint8_t* size = p++;
  p = st_debug_annotation_put_name_iid(p, name_iid);
  p = st_put_u64_field(p, ST_FIELD_DEBUG_ANNOTATION_STRING_VALUE_IID, text);
  *size = (uint8_t)(p - size - 1);
  return p;
}

/* Writes a value of a slice, which is not None. */
static uint8_t* put_value(uint8_t* p, const uint8_t* limit,
                          const struct thread_sequence* t, uint32_t name_iid,
                          const struct st_past_slice* slice, Py_ssize_t i) {
  PyObject* value = slice->values[i];
  if (!is_repeated_text(slice, i))
    return put_plain_argument(p, limit, name_iid, value);
  uint32_t text = st_identity_find(&t->texts, t->core.epoch, value);
  return put_text_iid(p, limit, name_iid, text);
}

/* Returns NULL if a value is not plain, or if it or its name has no id. */
static uint8_t* put_values(uint8_t* p, const struct thread_sequence* t,
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

/* Writes the BEGIN of a slice, for which there is room.  Returns false, with
 * nothing written, if a value can't be written here. */
static bool put_begin(struct thread_sequence* t, const struct template_entry* e,
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
  st_finish_wide(s, size, st_put_text(p, (const char*)e->block, e->size));
  return true;
}

/* Writes the END of a slice, for which there is room. */
static void put_end(struct st_sequence* s, uint64_t end) {
  uint8_t* start = put_time(s, s->writer.cur + 1, end);
  memcpy(start, st_end_block.bytes, ST_BLOCK_BYTES);
  st_trace_writer_commit(&s->writer, start + st_end_block.size);
  s->events_written++;
}

/* Returns the block of the template; NULL if the sequence has none now. */
static const struct template_entry* block_of(
    const struct thread_sequence* t, const EventTemplateObject* template) {
  if (t->filter_annotations || !t->templates)
    return NULL;
  const struct template_entry* e = template_cache_entry(t->templates, template);
  return e->number == template->number && e->epoch == t->core.epoch ? e : NULL;
}

/* --- the thread's own track ------------------------------------------------ */

/* Returns the sequence to which a slice on the thread's own track can be written
 * now, without new state; NULL if there is none. */
static ALWAYS_INLINE struct thread_sequence* ready_sequence(
    const struct st_past_slice* slice, uint32_t mask) {
  struct thread_sequence* t = only_sequence(st_own.state, mask);
  bool is_ready = t && !st_own.events_underway &&
                  st_sequence_is_current(&t->core) &&
                  slice->begin >= t->core.last_timestamp;
  return LIKELY(is_ready) ? t : NULL;
}

/* Writes a slice whose packets are kept.  Returns whether there were any. */
static ALWAYS_INLINE bool write_kept(const EventTemplateObject* template,
                                     const struct st_past_slice* slice,
                                     uint32_t mask) {
  struct thread_sequence* t = ready_sequence(slice, mask);
  if (UNLIKELY(!t || !t->past ||
               !st_trace_writer_has_room(&t->core.writer, PAST_MEMO_ROOM, 2)))
    return false;
  const struct past_memo* memo =
      past_memo_find(t->past, &t->core, template, slice);
  if (UNLIKELY(!memo))
    return false;
  past_memo_write(&t->core, memo, slice);
  return true;
}

/* Encodes a slice.  Returns false, with nothing written, if it needs new state or
 * has values of unusual types. */
RARE static bool write_plain(const EventTemplateObject* template,
                             const struct st_past_slice* slice, uint32_t mask) {
  struct thread_sequence* t = ready_sequence(slice, mask);
  const struct template_entry* e = t ? block_of(t, template) : NULL;
  if (!e)
    return false;
  struct st_trace_writer* w = &t->core.writer;
  size_t room = MAX_HEAD + MAX_VALUES + e->size + ST_SMALL_EVENT;
  const uint8_t* begin = w->cur;
  bool keep = slice->repeated && past_memo_fits(&t->core, slice);
  if (!st_trace_writer_has_room(w, room, 2) || !put_begin(t, e, slice))
    return false;
  const uint8_t* end = w->cur;
  put_end(&t->core, slice->end);
  if (keep)
    past_memo_keep(&t->past, &t->core, template, slice, begin, end);
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
  struct thread_sequence* t = only_sequence(st_own.state, mask);
  if (st_own.events_underway || !t || !st_sequence_is_current(&t->core))
    return false;
  bool has_any = false;
  for (Py_ssize_t i = 0; i < slice->count; i++) {
    PyObject* value = slice->values[i];
    if (!is_repeated_text(slice, i) ||
        st_identity_find(&t->texts, t->core.epoch, value))
      continue;
    has_any = true;
    if (!declare_text(st_own.state, t, value))
      return false;
  }
  return has_any;
}

/* --- all ways --------------------------------------------------------------- */

/* Writes a slice by st_emit, which may run Python code.  That may drop the
 * caller's references. */
static void emit_unusual(EventTemplateObject* template, PyObject* track,
                         const struct st_past_slice* slice, uint32_t mask) {
  struct event_request r = {.type = ST_SLICE_BEGIN,
                            .on_thread_track = !track,
                            .track = (TrackObject*)track,
                            .has_timestamp = true,
                            .is_past = true,
                            .timestamp = slice->begin};
  for (int i = 0; i < ST_PAST_VALUES; i++)
    Py_XINCREF(slice->values[i]);
  template_request(&r, template, slice->values, slice->count);
  emit_template_slice(&r, mask, slice->end);
  for (int i = 0; i < ST_PAST_VALUES; i++)
    Py_XDECREF(slice->values[i]);
}

RARE static void emit_past(EventTemplateObject* template, PyObject* track,
                           const struct st_past_slice* slice, uint32_t mask) {
  bool is_written =
      !track &&
      (write_plain(template, slice, mask) ||
       (declare_texts(slice, mask) && write_plain(template, slice, mask)));
  if (!is_written)
    emit_unusual(template, track, slice, mask);
}

ST_HOT void emit_past_slice(PyObject* template, PyObject* track,
                            const struct st_past_slice* slice) {
  EventTemplateObject* t = (EventTemplateObject*)template;
  uint32_t mask = category_mask(t->category);
  if (UNLIKELY(!mask))
    return;
  if (UNLIKELY(track || !write_kept(t, slice, mask)))
    emit_past(t, track, slice, mask);
}
