#include "call_cache.h"

static bool resize(struct call_cache* c, uint32_t capacity) {
  struct call_slot *old = c->slots, *slots;
  uint32_t old_capacity = old ? c->mask + 1 : 0, mask = capacity - 1;
  slots = PyMem_RawCalloc(capacity, sizeof *slots);
  if (!slots)
    return false;
  for (uint32_t i = 0; i < old_capacity; i++) {
    if (!old[i].code)
      continue;
    uint32_t to = identity_hash(old[i].code) & mask;
    while (slots[to].code)
      to = (to + 1) & mask;
    slots[to] = old[i];
  }
  c->slots = slots;
  c->mask = mask;
  PyMem_RawFree(old);
  return true;
}

static struct call_cache* cache_of(struct thread_sequence* s,
                                   CategoryObject* category) {
  if (s->calls)
    return s->calls;
  struct call_cache* c = PyMem_RawCalloc(1, sizeof *c);
  if (!c || !resize(c, FIRST_CALL_SLOTS)) {
    PyMem_RawFree(c);
    return NULL;
  }
  c->category = category;
  return s->calls = c;
}

/* A slot for one more code object: an empty one while no more than half are
 * taken, else the first where it belongs, whoever has it. */
static struct call_slot* slot_for(struct call_cache* c, PyObject* code) {
  uint32_t capacity = c->mask + 1;
  bool room = c->count * 2 < capacity ||
              (capacity < MAX_CALL_SLOTS && resize(c, 2 * capacity));
  uint32_t i = identity_hash(code) & c->mask;
  while (room && c->slots[i].code)
    i = (i + 1) & c->mask;
  return &c->slots[i];
}

void call_cache_put(struct thread_sequence* s, CategoryObject* category,
                    PyObject* code) {
  struct call_cache* c = cache_of(s, category);
  uint32_t epoch = s->core.epoch;
  uint32_t category_iid = known_category(s, category);
  uint32_t name = identity_find(&s->codes, epoch, code);
  uint32_t location = identity_find(&s->locations, epoch, code);
  if (!c || c->category != category || !category_iid || !name || !location)
    return;
  struct call_slot* slot = call_cache_find(c, category, code);
  if (!slot)
    slot = slot_for(c, code);
  bool fits = st_make_call_block(&slot->block, category_iid, name, location);
  slot->epoch = fits ? epoch : 0;
  PyObject* old = slot->code;
  c->count += old == NULL;
  slot->code = Py_NewRef(code);
  Py_XDECREF(old);
}

/* The text is the object's own.  False: it has none (lone surrogates).  No
 * exception may be set: it would be lost. */
static bool text_of(PyObject* string, const char** text, size_t* size) {
  Py_ssize_t signed_size = 0;
  *text = PyUnicode_AsUTF8AndSize(string, &signed_size);
  *size = (size_t)signed_size;
  if (!*text)
    PyErr_Clear();
  return *text != NULL;
}

bool call_cache_begin_anew(struct thread_sequence* s, CategoryObject* category,
                           struct call_slot* slot, uint64_t timestamp) {
  PyCodeObject* code = (PyCodeObject*)slot->code;
  struct st_function f = {.line = (uint32_t)code->co_firstlineno};
  uint32_t category_iid = known_category(s, category);
  bool written = category_iid && !PyErr_Occurred() &&
                 text_of(code->co_qualname, &f.name, &f.name_size) &&
                 text_of(code->co_filename, &f.file, &f.file_size) &&
                 st_sequence_write_named_call(&s->core, timestamp, category_iid,
                                              &f, &slot->block);
  if (written)
    slot->epoch = s->core.epoch;
  return written;
}

void call_cache_free(struct call_cache* c) {
  if (!c)
    return;
  for (uint32_t i = 0; i <= c->mask; i++)
    Py_XDECREF(c->slots[i].code);
  PyMem_RawFree(c->slots);
  PyMem_RawFree(c);
}
