#include "call_cache.h"

static struct call_cache* cache_of(struct thread_sequence* s,
                                   CategoryObject* category) {
  if (!s->calls)
    s->calls = PyMem_RawCalloc(1, sizeof *s->calls);
  if (s->calls && !s->calls->category)
    s->calls->category = category;
  return s->calls;
}

void call_cache_put(struct thread_sequence* s, CategoryObject* category,
                    PyObject* code) {
  struct call_cache* c = cache_of(s, category);
  uint32_t epoch = s->core.epoch, index = category->index;
  uint32_t name = identity_find(&s->codes, epoch, code);
  uint32_t location = identity_find(&s->locations, epoch, code);
  if (!c || c->category != category || !name || !location ||
      index >= s->category_capacity || s->categories[index].epoch != epoch)
    return;
  struct call_slot* slot = &c->slots[identity_hash(code) % CALL_SLOTS];
  bool fits = st_make_call_block(&slot->block, s->categories[index].iid, name,
                                 location);
  slot->epoch = fits ? epoch : 0;
  PyObject* old = slot->code;
  slot->code = Py_NewRef(code);
  Py_XDECREF(old);
}

void call_cache_free(struct call_cache* c) {
  if (!c)
    return;
  for (int i = 0; i < CALL_SLOTS; i++)
    Py_XDECREF(c->slots[i].code);
  PyMem_RawFree(c);
}
