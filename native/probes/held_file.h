/* Held files: files of /proc and /sys that are read repeatedly.
 *
 * A held file stays open between reads.  The kernel makes a new text for each
 * read from offset 0.  If a read fails, the file is opened again, because its
 * CPU may have been offline.
 *
 *   struct st_held_file file = {.fd = -1, .path = path};
 *   struct st_text text = st_held_file_read(&file, &buffer);
 *   st_held_file_close(&file);
 */
#pragma once

#include "probes/text.h"

/* A buffer on the heap.  A zeroed struct is empty.  The caller frees `data`. */
struct st_read_buffer {
  char* data;
  size_t capacity;
};

struct st_held_file {
  int fd;
  /* Whether the kernel writes the file as one record: a read that does not fill
   * the buffer is then the last one. */
  bool is_record;
  const char* path; /* Empty if there is no file: its contents are empty. */
};

/* Returns the contents of the file, in the buffer; empty if the file cannot be
 * read. */
struct st_text st_held_file_read(struct st_held_file* file,
                                 struct st_read_buffer* buffer);
void st_held_file_close(struct st_held_file* file);

/* Returns the contents of a file that is one record, such as /proc/PID/status;
 * empty if the file cannot be read.  The path is relative to a folder. */
struct st_text st_read_record(int folder, const char* path,
                              struct st_read_buffer* buffer);
