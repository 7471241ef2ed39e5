#include "probes/held_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { FIRST_CAPACITY = 1 << 14 };
/* Longer files are cut off. */
static const size_t kMaxCapacity = (size_t)1 << 26;

static bool grow(struct st_read_buffer* b, size_t used) {
  if (used < b->capacity)
    return true;
  size_t capacity = b->capacity ? b->capacity * 2 : FIRST_CAPACITY;
  char* data = capacity <= kMaxCapacity ? realloc(b->data, capacity) : NULL;
  if (!data)
    return false;
  *b = (struct st_read_buffer){data, capacity};
  return true;
}

/* Reads from offset 0 until a read returns no bytes, or, if `one_record`, until
 * a read does not fill the buffer.  Returns the size; -1 if the first read
 * fails. */
static ssize_t read_all(int fd, bool one_record, struct st_read_buffer* b) {
  size_t used = 0;
  ssize_t n = -1;
  while (grow(b, used)) {
    size_t room = b->capacity - used;
    do
      n = pread(fd, b->data + used, room, (off_t)used);
    while (n < 0 && errno == EINTR);
    used += n > 0 ? (size_t)n : 0;
    if (n <= 0 || (one_record && (size_t)n < room))
      break;
  }
  return n < 0 && !used ? -1 : (ssize_t)used;
}

static int open_at(int folder, const char* path) {
  return openat(folder, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
}

struct st_text st_held_file_read(struct st_held_file* file,
                                 struct st_read_buffer* buffer) {
  if (!*file->path)
    return st_text_of(NULL, 0);
  ssize_t size =
      file->fd < 0 ? -1 : read_all(file->fd, file->is_record, buffer);
  if (size < 0) {
    st_held_file_close(file);
    file->fd = open_at(AT_FDCWD, file->path);
    size = file->fd < 0 ? -1 : read_all(file->fd, file->is_record, buffer);
  }
  return st_text_of(buffer->data, size < 0 ? 0 : (size_t)size);
}

void st_held_file_close(struct st_held_file* file) {
  if (file->fd >= 0)
    close(file->fd);
  file->fd = -1;
}

struct st_text st_read_record(int folder, const char* path,
                              struct st_read_buffer* buffer) {
  int fd = open_at(folder, path);
  if (fd < 0)
    return st_text_of(NULL, 0);
  ssize_t size = read_all(fd, true, buffer);
  close(fd);
  return st_text_of(buffer->data, size < 0 ? 0 : (size_t)size);
}
