/* Tests of stream writers: one stream of bytes over many buffers. */
#include "core/stream_writer.h"

#include "check.h"
#include "core/message.h"

/* A delegate that provides buffers of given sizes, adjacent in one array. */
struct buffers {
  uint8_t bytes[512];
  size_t at;
  size_t sizes[8];
  unsigned count, used;
  unsigned redirects;
};

static void next_buffer(void* self, struct st_stream_writer* w) {
  struct buffers* b = self;
  if (b->used == b->count) {
    w->begin = w->cur = w->end = NULL;
    return;
  }
  w->begin = w->cur = b->bytes + b->at;
  b->at += b->sizes[b->used++];
  w->end = b->bytes + b->at;
}

static uint8_t* forget(void* self, uint8_t* size_field) {
  (void)size_field;
  ((struct buffers*)self)->redirects++;
  return NULL;
}

static const struct st_stream_delegate kDelegate = {next_buffer, forget};

static void fill(uint8_t* out, size_t size) {
  for (size_t i = 0; i < size; i++)
    out[i] = (uint8_t)(i + 1);
}

static void test_writes_continue_in_the_next_buffer(void) {
  struct buffers b = {.sizes = {16, 20, 64}, .count = 3};
  uint8_t data[100];
  fill(data, sizeof data);
  struct st_stream_writer w;
  st_stream_init(&w, &kDelegate, &b);
  st_stream_write(&w, data, 10);
  CHECK_EQ(b.used, 1);
  /* The buffer is exactly full, and the stream has not taken a new buffer
   * yet. */
  st_stream_write(&w, data + 10, 6);
  CHECK_EQ(b.used, 1);
  CHECK_EQ(st_stream_written(&w), 16);
  st_stream_write(&w, data + 16, 60);
  CHECK_EQ(b.used, 3);
  CHECK_EQ(st_stream_written(&w), 76);
  CHECK(memcmp(b.bytes, data, 76) == 0);
  CHECK_EQ(w.overflowed, 0);
}

static void test_reserved_bytes_are_contiguous(void) {
  struct buffers b = {.sizes = {16, 16}, .count = 2};
  struct st_stream_writer w;
  st_stream_init(&w, &kDelegate, &b);
  st_stream_write(&w, "0123456789abc", 13);
  CHECK(st_stream_reserve(&w, 3) == b.bytes + 13);
  CHECK(st_stream_reserve(&w, 4) == b.bytes + 16);
  CHECK_EQ(st_stream_written(&w), 20);
  /* The buffer has 12 bytes left, and there is no further buffer. */
  CHECK(st_stream_reserve(&w, 13) == NULL);
  CHECK_EQ(w.overflowed, 13);
}

static void test_bytes_without_room_are_counted(void) {
  struct buffers b = {.sizes = {16}, .count = 1};
  uint8_t data[40];
  fill(data, sizeof data);
  struct st_stream_writer w;
  st_stream_init(&w, &kDelegate, &b);
  st_stream_write(&w, data, sizeof data);
  CHECK_EQ(w.overflowed, 24);
  CHECK(memcmp(b.bytes, data, 16) == 0);
  /* The delegate is not called again, even if it could provide another
   * buffer. */
  b.count = 8;
  st_stream_write(&w, data, 5);
  CHECK(st_stream_reserve(&w, 4) == NULL);
  CHECK_EQ(w.overflowed, 33);
  CHECK_EQ(b.used, 1);
}

static void test_fixed_array_is_filled_and_overflow_is_counted(void) {
  uint8_t buffer[32], data[32];
  fill(data, sizeof data);
  struct st_stream_writer w;
  st_stream_init_fixed(&w, buffer, sizeof buffer);
  st_stream_write(&w, data, 32);
  CHECK(memcmp(buffer, data, 32) == 0);
  CHECK_EQ(w.overflowed, 0);
  st_stream_write(&w, data, 1);
  CHECK_EQ(w.overflowed, 1);
}

static void test_slices_of_a_heap_stream_are_joined(void) {
  enum { TOTAL = 1000 };
  uint8_t data[TOTAL];
  fill(data, sizeof data);
  struct st_heap_stream heap = {0};
  struct st_stream_writer w;
  for (size_t size = 0; size <= TOTAL; size += TOTAL / 4) {
    st_stream_reset_heap(&w, &heap, 16);
    st_stream_write(&w, data, size);
    const uint8_t* joined = st_heap_stream_join(&heap, &w);
    CHECK(joined && memcmp(joined, data, size) == 0);
    CHECK(heap.first == heap.last);
    CHECK_EQ(st_heap_stream_size(&heap, &w), size);
  }
  st_heap_stream_free(&heap);
}

static void test_heap_stream_grows_and_is_copied_in_order(void) {
  enum { TOTAL = 700001 };
  static uint8_t data[TOTAL], copy[TOTAL];
  fill(data, TOTAL);
  struct st_heap_stream heap = {0};
  struct st_stream_writer w;
  st_stream_reset_heap(&w, &heap, ST_FIRST_SLICE);
  CHECK_EQ(st_heap_stream_size(&heap, &w), 0);
  for (size_t at = 0, n = 1; at < TOTAL; at += n, n = n * 2 + 1) {
    if (n > TOTAL - at)
      n = TOTAL - at;
    st_stream_write(&w, data + at, n);
  }
  CHECK_EQ(st_heap_stream_size(&heap, &w), TOTAL);
  st_heap_stream_copy(&heap, &w, copy);
  CHECK(memcmp(copy, data, TOTAL) == 0);
  CHECK_EQ(heap.first->capacity, 128);
  CHECK_EQ(heap.first->next->capacity, 256);
  CHECK_EQ(heap.last->capacity, 128 * 1024);
  st_heap_stream_free(&heap);
  CHECK(!heap.first);
}

static void test_open_size_fields_are_redirected_at_the_end_of_a_buffer(void) {
  struct buffers b = {.sizes = {64, 64}, .count = 2};
  struct st_stream_writer w;
  st_stream_init(&w, &kDelegate, &b);
  struct st_message root, a, inner;
  st_message_init_root(&root, &w);
  st_message_begin_nested(&root, &a, 1);
  st_message_begin_nested(&a, &inner, 2);
  st_stream_extend(&w);
  CHECK_EQ(b.redirects, 2);
  CHECK(!a.size_field && !inner.size_field);
  /* The second buffer contains no bytes of the open messages. */
  st_stream_extend(&w);
  CHECK_EQ(b.redirects, 2);
}

static void test_stream_ends_at_the_maximal_size(void) {
  size_t size = (size_t)ST_MAX_MESSAGE_SIZE + 100;
  uint8_t* large = malloc(size);
  CHECK(large);
  struct st_stream_writer w;
  st_stream_init_fixed(&w, large, size);
  CHECK_EQ(w.end - w.begin, ST_MAX_MESSAGE_SIZE);
  w.cur = w.end - 8;
  struct st_message root;
  st_message_init_root(&root, &w);
  /* The slow path is taken: less room is left than requested. */
  st_message_append_varint(&root, 1, 5);
  CHECK_EQ(w.overflowed, 0);
  st_message_append_fixed64(&root, 1, 5);
  CHECK_EQ(w.overflowed, 9);
  CHECK_EQ(st_stream_written(&w), ST_MAX_MESSAGE_SIZE - 6);
  free(large);
}

static void test_heap_stream_can_be_reset(void) {
  struct st_stream_writer w;
  struct st_heap_stream heap = {0};
  uint8_t data[5000], out[5000];
  fill(data, sizeof data);
  for (size_t size = 0; size <= sizeof data; size += 1250) {
    st_stream_reset_heap(&w, &heap, 1000);
    CHECK(heap.first == heap.last);
    CHECK_EQ(w.end - w.cur, 1000);
    st_stream_write(&w, data, size);
    CHECK_EQ(st_heap_stream_size(&heap, &w), size);
    st_heap_stream_copy(&heap, &w, out);
    CHECK(memcmp(out, data, size) == 0);
  }
  st_heap_stream_free(&heap);
}

int main(void) {
  RUN(test_writes_continue_in_the_next_buffer);
  RUN(test_reserved_bytes_are_contiguous);
  RUN(test_bytes_without_room_are_counted);
  RUN(test_fixed_array_is_filled_and_overflow_is_counted);
  RUN(test_slices_of_a_heap_stream_are_joined);
  RUN(test_heap_stream_grows_and_is_copied_in_order);
  RUN(test_open_size_fields_are_redirected_at_the_end_of_a_buffer);
  RUN(test_stream_ends_at_the_maximal_size);
  RUN(test_heap_stream_can_be_reset);
  return 0;
}
