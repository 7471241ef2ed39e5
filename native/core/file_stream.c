#include "file_stream.h"

#include <stdlib.h>

#include "message.h"

enum { SLICE_BYTES = 64 * 1024 };

static bool contains(const struct st_heap_slice* slice, const uint8_t* p) {
  return (uintptr_t)p >= (uintptr_t)slice->bytes &&
         (uintptr_t)p < (uintptr_t)slice->bytes + slice->capacity;
}

/* Returns the size field of the outermost open message, whose length is not
 * known yet.  Returns NULL if no message is open. */
static const uint8_t* first_size_field(const struct st_stream_writer* w) {
  const uint8_t* first = NULL;
  for (const struct st_message* m = w->innermost; m; m = m->parent) {
    if (m->size_field)
      first = m->size_field;
  }
  return first;
}

static void write_first_slice(struct st_file_stream* f) {
  struct st_heap_slice* slice = f->slices.first;
  f->slices.first = slice->next;
  if (!f->slices.first)
    f->slices.last = NULL;
  if (!f->failed)
    f->failed = !f->write(f->self, slice->bytes, slice->used);
  free(slice);
}

static void write_out(struct st_file_stream* f, struct st_stream_writer* w) {
  const uint8_t* open = first_size_field(w);
  if (f->slices.last)
    f->slices.last->used = (size_t)(w->cur - w->begin);
  while (f->slices.first && !(open && contains(f->slices.first, open)))
    write_first_slice(f);
}

static void next_slice(void* self, struct st_stream_writer* w) {
  struct st_file_stream* f = self;
  write_out(f, w);
  struct st_heap_slice* slice =
      f->failed ? NULL : st_heap_stream_add(&f->slices, SLICE_BYTES);
  w->begin = w->cur = slice ? slice->bytes : NULL;
  w->end = slice ? slice->bytes + SLICE_BYTES : NULL;
}

static uint8_t* keep_size_field(void* self, uint8_t* size_field) {
  (void)self;
  return size_field;
}

void st_file_stream_init(struct st_file_stream* f, struct st_stream_writer* w,
                         bool (*write)(void*, const void*, size_t),
                         void* self) {
  static const struct st_stream_delegate delegate = {next_slice,
                                                     keep_size_field};
  *f = (struct st_file_stream){.write = write, .self = self};
  st_stream_init(w, &delegate, f);
}

bool st_file_stream_finish(struct st_file_stream* f,
                           struct st_stream_writer* w) {
  write_out(f, w);
  w->begin = w->cur = w->end = NULL;
  return !f->failed && !w->overflowed;
}

void st_file_stream_free(struct st_file_stream* f) {
  st_heap_stream_free(&f->slices);
}
