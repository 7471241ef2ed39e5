/* Tests of file streams: slices are written to the file while the stream
 * grows. */
#include "core/file_stream.h"

#include <string.h>

#include "check.h"
#include "core/message.h"

enum { SLICE = 64 * 1024 };

static uint8_t file[4 << 20];
static size_t file_size;
static size_t writes;
static bool broken;

static bool write_to_file(void* self, const void* data, size_t size) {
  CHECK(self == file);
  writes++;
  if (broken)
    return false;
  CHECK(file_size + size <= sizeof file);
  memcpy(file + file_size, data, size);
  file_size += size;
  return true;
}

static struct st_file_stream f;
static struct st_stream_writer w;
static struct st_message root;

static void start(void) {
  file_size = writes = 0;
  broken = false;
  st_file_stream_init(&f, &w, write_to_file, file);
  st_message_init_root(&root, &w);
}

static bool finish(void) {
  st_message_finalize(&root);
  bool done = st_file_stream_finish(&f, &w);
  st_file_stream_free(&f);
  return done;
}

static void empty_stream_writes_nothing(void) {
  start();
  CHECK(finish());
  CHECK_EQ(file_size, 0);
}

static void full_slices_are_written(void) {
  static uint8_t data[10 * SLICE];
  for (size_t i = 0; i < sizeof data; i++)
    data[i] = (uint8_t)(i * 13);
  start();
  st_message_append_raw(&root, data, sizeof data);
  CHECK_EQ(file_size, 9 * SLICE);
  CHECK(finish());
  CHECK_EQ(file_size, sizeof data);
  CHECK(memcmp(file, data, sizeof data) == 0);
}

static void slices_after_an_open_length_stay_in_memory(void) {
  static uint8_t data[SLICE];
  struct st_message outer, inner;
  start();
  st_message_append_raw(&root, data, SLICE - 2);
  /* The tag of the message is in this slice, its size field in the next. */
  st_message_begin_nested(&root, &outer, 1);
  /* The message's size field does not fit in this slice. */
  CHECK_EQ(file_size, SLICE - 1);
  for (int i = 0; i < 5; i++) {
    st_message_begin_nested(&outer, &inner, 2);
    st_message_append_raw(&inner, data, sizeof data);
  }
  CHECK_EQ(file_size, SLICE - 1);
  st_message_finalize(&outer);
  st_message_append_raw(&root, data, sizeof data);
  CHECK(file_size > 5 * SLICE);
  CHECK(finish());
  CHECK_EQ(file_size, root.size);
  const uint8_t* p = file + SLICE - 2;
  uint8_t size[4];
  st_put_size_field(size, 5 * (5 + SLICE));
  CHECK(p[0] == 0x0A && memcmp(p + 1, size, 4) == 0);
  st_put_size_field(size, SLICE);
  CHECK(p[5] == 0x12 && memcmp(p + 6, size, 4) == 0);
}

static void no_write_follows_a_failed_one(void) {
  static uint8_t data[3 * SLICE];
  start();
  broken = true;
  st_message_append_raw(&root, data, sizeof data);
  CHECK_EQ(writes, 1);
  CHECK(w.overflowed > 0);
  broken = false;
  st_message_append_raw(&root, data, sizeof data);
  CHECK(!finish());
  CHECK_EQ(writes, 1);
  CHECK_EQ(file_size, 0);
}

static void failed_last_write_is_reported(void) {
  start();
  st_message_append_varint(&root, 1, 1);
  broken = true;
  CHECK(!finish());
}

int main(void) {
  RUN(empty_stream_writes_nothing);
  RUN(full_slices_are_written);
  RUN(slices_after_an_open_length_stay_in_memory);
  RUN(no_write_follows_a_failed_one);
  RUN(failed_last_write_is_reported);
  return 0;
}
