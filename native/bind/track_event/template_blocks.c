#include "bind/track_event/template_blocks.h"

#include "bind/common/bytes_builder.h"
#include "bind/track_event/annotations.h"
#include "bind/track_event/template_cache.h"
#include "core/fields.h"
#include "core/setters.h"

/* The largest size of a template's block.  The events of a template with a
 * larger block are written by st_emit. */
enum { MAX_BLOCK = 768 };

/* Appends a constant argument as debug_annotations { name_iid, value }.
 * Returns false if the argument's name has no id. */
static bool append_constant(struct bytes_builder* out,
                            struct thread_sequence* s, PyObject* name,
                            PyObject* value) {
  uint32_t iid = st_identity_find(&s->argument_names, s->core.epoch, name);
  uint8_t* p = iid ? builder_room(out, 16) : NULL;
  if (!p)
    return false;
  size_t tag = out->size;
  /* Three bytes are reserved: the tag, and a size of two bytes. */
  out->size += 3;
  p = st_debug_annotation_put_name_iid(p + 3, iid);
  builder_set_end(out, p);
  append_plain_value(out, value);
  size_t size = out->size - tag - 3;
  if (size > MAX_BLOCK)
    return false;
  out->data[tag] =
      ST_FIELD_TRACK_EVENT_DEBUG_ANNOTATIONS << 3 | ST_WIRE_DELIMITED;
  out->data[tag + 1] = (uint8_t)(size | 0x80);
  out->data[tag + 2] = (uint8_t)(size >> 7);
  return true;
}

static bool append_block(struct bytes_builder* out, struct thread_sequence* s,
                         const EventTemplateObject* template) {
  uint32_t category = known_category(s, template->category);
  uint32_t name = st_identity_find(&s->names, s->core.epoch, template->name);
  uint8_t* p = category && name ? builder_room(out, 32) : NULL;
  if (!p)
    return false;
  p = st_put_small_ids(p + out->size, category, name);
  builder_set_end(out, p);
  PyObject *key, *value;
  Py_ssize_t pos = 0;
  while (PyDict_Next(template->constants, &pos, &key, &value)) {
    if (!append_constant(out, s, key, value) || out->size > MAX_BLOCK)
      return false;
  }
  return true;
}

/* Looks up the ids of the names of a template's values.  The id of a name that
 * is not interned yet becomes 0. */
static void find_names(struct template_entry* e, struct thread_sequence* s,
                       PyObject* names) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
    e->iids[i] = st_identity_find(&s->argument_names, s->core.epoch,
                                  PyTuple_GET_ITEM(names, i));
  }
}

void remember_template(struct thread_sequence* s,
                       const EventTemplateObject* template) {
  if (!s->templates)
    s->templates = PyMem_RawCalloc(1, sizeof *s->templates);
  if (!s->templates)
    return;
  struct template_entry* e = template_cache_entry(s->templates, template);
  struct bytes_builder out = {e->block, 0, e->capacity};
  bool ok = append_block(&out, s, template);
  find_names(e, s, template->names[template->count]);
  e->block = out.data;
  e->size = (uint32_t)out.size;
  e->capacity = (uint32_t)out.capacity;
  e->epoch = s->core.epoch;
  e->number = ok ? template->number : 0;
}
