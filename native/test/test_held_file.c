/* Tests of files that are read repeatedly. */
#include "probes/held_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"

static char path[] = "/tmp/test_held_file_XXXXXX";
static struct st_read_buffer buffer;

static void write_file(const char* data, size_t size) {
  FILE* f = fopen(path, "wb");
  CHECK(f && fwrite(data, 1, size, f) == size && fclose(f) == 0);
}

static void each_read_returns_the_current_contents(void) {
  struct st_held_file file = {.fd = -1, .path = path};
  write_file("one", 3);
  CHECK(st_text_is(st_held_file_read(&file, &buffer), "one"));
  write_file("second", 6);
  CHECK(st_text_is(st_held_file_read(&file, &buffer), "second"));
  st_held_file_close(&file);
}

static void file_is_opened_again_after_a_failed_read(void) {
  struct st_held_file file = {.fd = -1, .path = path};
  unlink(path);
  CHECK_EQ(st_text_size(st_held_file_read(&file, &buffer)), 0);
  write_file("there", 5);
  CHECK(st_text_is(st_held_file_read(&file, &buffer), "there"));
  st_held_file_close(&file);
  CHECK_EQ(file.fd, -1);
}

static void long_files_are_read_whole(void) {
  enum { SIZE = 100000 };
  static char text[SIZE];
  memset(text, 'x', SIZE);
  write_file(text, SIZE);
  struct st_held_file file = {.fd = -1, .path = path};
  for (int record = 0; record < 2; record++) {
    file.is_record = record;
    CHECK_EQ(st_text_size(st_held_file_read(&file, &buffer)), SIZE);
  }
  st_held_file_close(&file);
  CHECK_EQ(st_text_size(st_read_record(AT_FDCWD, path, &buffer)), SIZE);
}

static void files_of_the_kernel_are_read(void) {
  struct st_held_file file = {.fd = -1, .path = "/proc/self/stat"};
  for (int i = 0; i < 3; i++)
    CHECK(st_text_size(st_held_file_read(&file, &buffer)) > 20);
  st_held_file_close(&file);
  file = (struct st_held_file){.fd = -1, .path = "/proc"};
  CHECK_EQ(st_text_size(st_held_file_read(&file, &buffer)), 0);
  st_held_file_close(&file);
  CHECK_EQ(st_text_size(st_read_record(AT_FDCWD, "/no/file", &buffer)), 0);
}

int main(void) {
  int fd = mkstemp(path);
  CHECK(fd >= 0);
  close(fd);
  RUN(each_read_returns_the_current_contents);
  RUN(file_is_opened_again_after_a_failed_read);
  RUN(long_files_are_read_whole);
  RUN(files_of_the_kernel_are_read);
  unlink(path);
  free(buffer.data);
  return 0;
}
