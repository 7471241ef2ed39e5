#include "bind/protozero/decoder_object.h"

PyTypeObject* st_decoder_type;

PyObject* decoder_new_for(struct byte_range range) {
  struct decoder_object* d =
      (struct decoder_object*)st_decoder_type->tp_alloc(st_decoder_type, 0);
  if (!d) {
    byte_range_clear(&range);
    return NULL;
  }
  d->range = range;
  st_decoder_init(&d->decoder, range.data, range.size);
  return (PyObject*)d;
}
