#include "bind/track_event/call_blocks.h"

#include "bind/common/text.h"
#include "bind/track_event/source_location.h"
#include "core/identity_cache.h"

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
  uint32_t epoch = s->core.epoch;
  uint32_t category_iid = known_category(s, category);
  uint32_t name = st_identity_find(&s->names, epoch, code_name(code));
  uint32_t location = st_identity_find(&s->locations, epoch, code);
  if (!c || c->category != category || !category_iid || !name || !location)
    return;
  struct st_call_slot* slot = st_call_table_place(&c->table, code);
  if (!slot)
    return;
  bool fits = st_make_call_block(&slot->block, category_iid, name, location);
  slot->epoch = fits ? epoch : 0;
  PyObject* old = slot->code;
  slot->code = Py_NewRef(code);
  Py_XDECREF(old);
}

bool call_cache_begin_anew(struct thread_sequence* s, CategoryObject* category,
                           struct st_call_slot* slot, uint64_t timestamp) {
  PyCodeObject* code = (PyCodeObject*)slot->code;
  struct st_function f = {.line = (uint32_t)code->co_firstlineno};
  uint32_t category_iid = known_category(s, category);
  bool written = category_iid && !PyErr_Occurred() &&
                 st_bind_text(code_name(slot->code), &f.name, &f.name_size) &&
                 st_bind_text(code->co_filename, &f.file, &f.file_size) &&
                 st_sequence_write_named_call(&s->core, timestamp, category_iid,
                                              &f, &slot->block);
  if (written)
    slot->epoch = s->core.epoch;
  return written;
}
