/* Writes a scripted message into buffers of various small sizes, and compares
 * the bytes with those of the plain encoder. */
#pragma once

#include "message_script.h"

enum { STITCHED_LIMIT = 2 << 20 };

/* A stream whose buffers are like chunks: when the stream has left a buffer,
 * the message cannot write to that buffer any more.  The message can only make
 * patches for it, which stitcher_finish() applies. */
struct stitcher {
  /* The script from which the sizes of the buffers are read. */
  struct script* sizes;
  uint8_t* out;
  size_t out_size;
  uint8_t buffer[512];
  struct {
    size_t at;
    uint8_t bytes[ST_SIZE_FIELD];
  } patches[65536];
  size_t patch_count;
};

static inline void stitch(struct stitcher* s, struct st_stream_writer* w) {
  size_t used = (size_t)(w->cur - w->begin);
  CHECK(s->out_size + used <= STITCHED_LIMIT);
  if (used > 0)
    memcpy(s->out + s->out_size, s->buffer, used);
  s->out_size += used;
  /* Overwrites the old buffer, to which the message must not write any more. */
  memset(s->buffer, 0xEE, sizeof s->buffer);
}

static void stitcher_new_buffer(void* self, struct st_stream_writer* w) {
  struct stitcher* s = self;
  stitch(s, w);
  w->begin = w->cur = s->buffer;
  w->end = w->begin + ST_MIN_BUFFER + script_byte(s->sizes) % 240;
}

static uint8_t* stitcher_redirect(void* self, uint8_t* size_field) {
  struct stitcher* s = self;
  CHECK(s->patch_count < sizeof s->patches / sizeof s->patches[0]);
  CHECK(size_field[0] == 0 && size_field[3] == 0);
  s->patches[s->patch_count].at =
      s->out_size + (size_t)(size_field - s->buffer);
  return s->patches[s->patch_count++].bytes;
}

static inline void stitcher_finish(struct stitcher* s,
                                   struct st_stream_writer* w) {
  stitch(s, w);
  for (size_t i = 0; i < s->patch_count; i++) {
    /* In a ready patch, byte 0 has bit 7 set. */
    CHECK(s->patches[i].bytes[0] & 0x80);
    CHECK(s->patches[i].at + ST_SIZE_FIELD <= s->out_size);
    memcpy(s->out + s->patches[i].at, s->patches[i].bytes, ST_SIZE_FIELD);
  }
}

static inline void check_same(const uint8_t* data, size_t size,
                              const struct plain_message* plain) {
  static uint8_t canonical[STITCHED_LIMIT + 256];
  CHECK(size <= STITCHED_LIMIT);
  size_t n = canonicalise(data, data + size, canonical);
  CHECK_EQ(n, plain->levels[0].size);
  CHECK(memcmp(canonical, plain->levels[0].data, n) == 0);
}

static inline void check_message(const uint8_t* data, size_t size) {
  static struct plain_message plain;
  static uint8_t out[STITCHED_LIMIT];
  static struct stitcher stitcher;
  struct script script = {data, data + size};
  struct st_message root;
  struct st_stream_writer w;

  struct st_heap_stream heap = {0};
  st_stream_reset_heap(&w, &heap, ST_FIRST_SLICE);
  st_message_init_root(&root, &w);
  script_message(&script, &root, &plain, UINT32_MAX);
  size_t heap_size = st_heap_stream_size(&heap, &w);
  CHECK_EQ(heap_size, root.size);
  CHECK(heap_size <= sizeof out);
  st_heap_stream_copy(&heap, &w, out);
  check_same(out, heap_size, &plain);
  st_heap_stream_free(&heap);

  struct script again = {data, data + size};
  struct script sizes = {data, data + size};
  stitcher.sizes = &sizes;
  stitcher.out = out;
  stitcher.out_size = stitcher.patch_count = 0;
  static const struct st_stream_delegate kDelegate = {stitcher_new_buffer,
                                                      stitcher_redirect};
  st_stream_init(&w, &kDelegate, &stitcher);
  st_message_init_root(&root, &w);
  script_message(&again, &root, &plain, UINT32_MAX);
  CHECK_EQ(w.overflowed, 0);
  stitcher_finish(&stitcher, &w);
  CHECK_EQ(stitcher.out_size, root.size);
  check_same(out, stitcher.out_size, &plain);

  /* Writes into an array that is too small.  The bytes beyond it must be
   * counted, and not written. */
  static uint8_t small[300];
  size_t room = plain.levels[0].size < sizeof small ? 8 : sizeof small;
  struct script third = {data, data + size};
  st_stream_init_fixed(&w, small, room);
  st_message_init_root(&root, &w);
  script_message(&third, &root, &plain, UINT32_MAX);
  CHECK(w.overflowed > 0 || plain.levels[0].size <= room);
}
