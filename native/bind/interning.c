/* Strings to ids: by the identity of the object first, by value second. */
#include "../core/fields.h"
#include "../core/setters.h"
#include "track_event.h"

enum { FIRST_SLOTS = 64, MAX_SLOTS = 4096, CONFLICTS_TO_GROW = 32 };

uint8_t* builder_room(struct bytes_builder* b, size_t n) {
  if (b->capacity - b->size < n) {
    size_t capacity = b->capacity ? 2 * b->capacity : 256;
    while (capacity - b->size < n)
      capacity *= 2;
    uint8_t* grown = PyMem_RawRealloc(b->data, capacity);
    if (!grown)
      return NULL;
    b->data = grown;
    b->capacity = capacity;
  }
  return b->data + b->size;
}

bool builder_append(struct bytes_builder* b, const void* data, size_t n) {
  uint8_t* p = builder_room(b, n);
  if (!p)
    return false;
  if (n)
    memcpy(p, data, n);
  b->size += n;
  return true;
}

/* Its destructor could run anything, so it waits until the event is written. */
void discard_later(struct thread_state* t, PyObject* object) {
  if (!object)
    return;
  if (t->discarded_count == MAX_DISCARDED) {
    Py_DECREF(object); /* str and code: nothing of ours runs */
    return;
  }
  t->discarded[t->discarded_count++] = object;
}

static bool cache_resize(struct thread_state* t, struct identity_cache* c,
                         uint32_t slots) {
  struct identity_slot* old = c->slots;
  uint32_t old_slots = old ? c->mask + 1 : 0;
  c->slots = PyMem_RawCalloc(slots, sizeof *c->slots);
  if (!c->slots) {
    c->slots = old;
    return false;
  }
  c->mask = slots - 1;
  c->conflicts = 0;
  for (uint32_t i = 0; i < old_slots; i++) {
    if (!old[i].key)
      continue;
    struct identity_slot* s = &c->slots[identity_hash(old[i].key) & c->mask];
    if (s->key)
      discard_later(t, s->key);
    *s = old[i];
  }
  PyMem_RawFree(old);
  return true;
}

void identity_put(struct thread_state* t, struct identity_cache* c,
                  uint32_t epoch, PyObject* key, uint32_t iid) {
  if (!c->slots && !cache_resize(t, c, FIRST_SLOTS))
    return;
  struct identity_slot* s = &c->slots[identity_hash(key) & c->mask];
  if (s->key && s->key != key && s->epoch == epoch &&
      ++c->conflicts > CONFLICTS_TO_GROW && c->mask + 1 < MAX_SLOTS) {
    if (cache_resize(t, c, 2 * (c->mask + 1)))
      s = &c->slots[identity_hash(key) & c->mask];
  }
  if (s->key != key) {
    Py_INCREF(key);
    discard_later(t, s->key);
    s->key = key;
  }
  s->epoch = epoch;
  s->iid = iid;
}

/* InternedData field of a kind. */
static uint32_t interned_field(enum st_intern_kind kind) {
  switch (kind) {
    case ST_INTERN_CATEGORY:
      return ST_FIELD_INTERNED_DATA_EVENT_CATEGORIES;
    case ST_INTERN_EVENT_NAME:
      return ST_FIELD_INTERNED_DATA_EVENT_NAMES;
    case ST_INTERN_ANNOTATION_NAME:
      return ST_FIELD_INTERNED_DATA_DEBUG_ANNOTATION_NAMES;
    default:
      return ST_FIELD_INTERNED_DATA_LOG_MESSAGE_BODY;
  }
}

/* An EventName, or one of the others, which have the same two fields. */
static void append_entry(struct bytes_builder* out, uint32_t field,
                         uint32_t iid, const char* data, size_t size) {
  uint8_t* p = builder_room(out, size + 32);
  if (!p)
    return;
  p = st_put_tag(p, field, ST_WIRE_DELIMITED);
  p = st_put_varint(p,
                    1 + st_varint_size(iid) + 1 + st_varint_size(size) + size);
  p = st_event_name_put_iid(p, iid);
  p = st_event_name_put_name(p, data, size);
  out->size = (size_t)(p - out->data);
}

uint32_t intern_string(struct thread_state* t, struct thread_sequence* s,
                       enum st_intern_kind kind, struct identity_cache* cache,
                       PyObject* string) {
  uint32_t epoch = s->core.epoch;
  uint32_t iid = cache ? identity_find(cache, epoch, string) : 0;
  if (iid)
    return iid;
  Py_ssize_t size;
  PyObject* release;
  const char* data = utf8_of(string, &size, &release);
  bool is_new;
  iid = data ? st_intern(&s->core.interned, kind, data, (size_t)size, &is_new)
             : 0;
  if (iid && is_new)
    append_entry(&t->interned, interned_field(kind), iid, data, (size_t)size);
  Py_XDECREF(release);
  if (iid && cache && PyUnicode_CheckExact(string))
    identity_put(t, cache, epoch, string, iid);
  return iid;
}
