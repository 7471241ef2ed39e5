#include "bind/track_event/interning.h"

#include "bind/common/text.h"
#include "core/fields.h"
#include "core/setters.h"

void identity_put(struct thread_state* t, struct st_identity_cache* c,
                  uint32_t epoch, PyObject* key, uint32_t iid) {
  struct st_identity_slot* s = st_identity_place(c, epoch, key);
  if (!s)
    return;
  if (s->key != key) {
    discard_later(t, s->key);
    s->key = Py_NewRef(key);
  }
  s->epoch = epoch;
  s->iid = iid;
}

/* The InternedData field for strings of a kind. */
static const uint32_t kInternedFields[] = {
    [ST_INTERN_CATEGORY] = ST_FIELD_INTERNED_DATA_EVENT_CATEGORIES,
    [ST_INTERN_EVENT_NAME] = ST_FIELD_INTERNED_DATA_EVENT_NAMES,
    [ST_INTERN_ANNOTATION_NAME] = ST_FIELD_INTERNED_DATA_DEBUG_ANNOTATION_NAMES,
    [ST_INTERN_ANNOTATION_VALUE] =
        ST_FIELD_INTERNED_DATA_DEBUG_ANNOTATION_STRING_VALUES,
};

void append_interned(struct bytes_builder* out, uint32_t field, uint32_t iid,
                     const char* data, size_t size) {
  uint8_t* p = builder_room(out, size + 32);
  if (!p)
    return;
  p = st_put_tag(p, field, ST_WIRE_DELIMITED);
  p = st_put_varint(p,
                    1 + st_varint_size(iid) + 1 + st_varint_size(size) + size);
  p = st_event_name_put_iid(p, iid);
  p = st_event_name_put_name(p, data, size);
  builder_set_end(out, p);
}

uint32_t intern_string(struct thread_state* t, struct thread_sequence* s,
                       enum st_intern_kind kind,
                       struct st_identity_cache* cache, PyObject* string) {
  uint32_t epoch = s->core.epoch;
  uint32_t iid = cache ? st_identity_find(cache, epoch, string) : 0;
  if (iid)
    return iid;
  Py_ssize_t size;
  PyObject* release;
  const char* data = utf8_of(string, &size, &release);
  bool is_new;
  iid = data ? st_intern(&s->core.interned, kind, data, (size_t)size, &is_new)
             : 0;
  if (iid && is_new)
    append_interned(&t->interned, kInternedFields[kind], iid, data,
                    (size_t)size);
  Py_XDECREF(release);
  if (iid && cache && PyUnicode_CheckExact(string))
    identity_put(t, cache, epoch, string, iid);
  return iid;
}
