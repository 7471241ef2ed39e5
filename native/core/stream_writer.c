#include "stream_writer.h"

#include <stdlib.h>

enum { LARGEST_SLICE = 128 * 1024 };

void st_stream_init(struct st_stream_writer* w,
                    const struct st_stream_delegate* delegate, void* self) {
  memset(w, 0, sizeof *w);
  w->delegate = delegate;
  w->self = self;
}

static bool in_current_buffer(const struct st_stream_writer* w,
                              const uint8_t* p) {
  return (uintptr_t)p >= (uintptr_t)w->begin &&
         (uintptr_t)p < (uintptr_t)w->end;
}

/* Ends the buffer where the stream would reach its maximal size.  Then a write
 * that fits into the buffer need not check the size of the stream. */
static void cut_at_limit(struct st_stream_writer* w) {
  uint64_t left = w->written_before < ST_MAX_MESSAGE_SIZE
                      ? ST_MAX_MESSAGE_SIZE - w->written_before
                      : 0;
  if ((uint64_t)(w->end - w->begin) > left)
    w->end = w->begin + left;
}

void st_stream_extend(struct st_stream_writer* w) {
  for (struct st_message* m = w->innermost; m; m = m->parent) {
    if (m->size_field && in_current_buffer(w, m->size_field))
      m->size_field = w->delegate->redirect_size_field(w->self, m->size_field);
  }
  w->written_before += (uint64_t)(w->cur - w->begin);
  w->delegate->new_buffer(w->self, w);
  cut_at_limit(w);
}

void st_stream_write_slow(struct st_stream_writer* w, const void* data,
                          size_t size) {
  const uint8_t* from = data;
  while (size > 0) {
    if (w->cur == w->end && !w->overflowed)
      st_stream_extend(w);
    size_t room = (size_t)(w->end - w->cur);
    if (room == 0) {
      w->overflowed += size;
      return;
    }
    size_t part = size < room ? size : room;
    memcpy(w->cur, from, part);
    w->cur += part;
    from += part;
    size -= part;
  }
}

uint8_t* st_stream_reserve(struct st_stream_writer* w, size_t n) {
  if ((size_t)(w->end - w->cur) < n && !w->overflowed)
    st_stream_extend(w);
  if ((size_t)(w->end - w->cur) < n) {
    w->overflowed += n;
    return NULL;
  }
  uint8_t* reserved = w->cur;
  w->cur += n;
  return reserved;
}

static void no_more_room(struct st_stream_writer* w) {
  w->begin = w->cur = w->end = NULL;
}

static uint8_t* keep_size_field(void* self, uint8_t* size_field) {
  (void)self;
  return size_field;
}

static void fixed_new_buffer(void* self, struct st_stream_writer* w) {
  (void)self;
  no_more_room(w);
}

void st_stream_init_fixed(struct st_stream_writer* w, void* buffer,
                          size_t size) {
  static const struct st_stream_delegate delegate = {fixed_new_buffer,
                                                     keep_size_field};
  st_stream_init(w, &delegate, NULL);
  w->begin = w->cur = buffer;
  w->end = w->begin + size;
  cut_at_limit(w);
}

static size_t next_capacity(const struct st_heap_slice* last) {
  if (!last)
    return ST_FIRST_SLICE;
  size_t doubled = last->capacity * 2;
  return doubled < LARGEST_SLICE ? doubled : LARGEST_SLICE;
}

struct st_heap_slice* st_heap_stream_add(struct st_heap_stream* heap,
                                         size_t capacity) {
  struct st_heap_slice* slice = malloc(sizeof *slice + capacity);
  if (!slice)
    return NULL;
  slice->next = NULL;
  slice->used = 0;
  slice->capacity = capacity;
  if (heap->last)
    heap->last->next = slice;
  else
    heap->first = slice;
  return heap->last = slice;
}

static void write_to_slice(struct st_stream_writer* w,
                           struct st_heap_slice* slice) {
  w->begin = w->cur = slice->bytes;
  w->end = slice->bytes + slice->capacity;
}

static void heap_new_buffer(void* self, struct st_stream_writer* w) {
  struct st_heap_stream* heap = self;
  if (heap->last)
    heap->last->used = (size_t)(w->cur - w->begin);
  struct st_heap_slice* slice =
      st_heap_stream_add(heap, next_capacity(heap->last));
  if (slice)
    write_to_slice(w, slice);
  else
    no_more_room(w);
}

static const struct st_stream_delegate kHeapDelegate = {heap_new_buffer,
                                                        keep_size_field};

static void free_slices(struct st_heap_slice* slice) {
  while (slice) {
    struct st_heap_slice* next = slice->next;
    free(slice);
    slice = next;
  }
}

void st_stream_reset_heap(struct st_stream_writer* w,
                          struct st_heap_stream* heap, size_t first_capacity) {
  st_stream_init(w, &kHeapDelegate, heap);
  if (!heap->first && !st_heap_stream_add(heap, first_capacity))
    return;
  free_slices(heap->first->next);
  heap->first->next = NULL;
  heap->last = heap->first;
  write_to_slice(w, heap->first);
}

size_t st_heap_stream_size(const struct st_heap_stream* heap,
                           const struct st_stream_writer* w) {
  (void)heap;
  return (size_t)st_stream_written(w);
}

void st_heap_stream_copy(const struct st_heap_stream* heap,
                         const struct st_stream_writer* w, uint8_t* out) {
  for (const struct st_heap_slice* s = heap->first; s; s = s->next) {
    size_t used = w->begin == s->bytes ? (size_t)(w->cur - w->begin) : s->used;
    memcpy(out, s->bytes, used);
    out += used;
  }
}

const uint8_t* st_heap_stream_join(struct st_heap_stream* heap,
                                   struct st_stream_writer* w) {
  if (heap->first && !heap->first->next)
    return heap->first->bytes;
  size_t size = st_heap_stream_size(heap, w);
  struct st_heap_stream joined = {0};
  struct st_heap_slice* slice = st_heap_stream_add(&joined, size);
  if (!slice)
    return NULL;
  st_heap_stream_copy(heap, w, slice->bytes);
  st_heap_stream_free(heap);
  *heap = joined;
  w->begin = slice->bytes;
  w->cur = w->end = slice->bytes + size;
  w->written_before = 0;
  return slice->bytes;
}

void st_heap_stream_free(struct st_heap_stream* heap) {
  free_slices(heap->first);
  heap->first = heap->last = NULL;
}
