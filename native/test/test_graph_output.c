/* Tests of the parts of object graphs, read back from a pipe; and of the copy of
 * the process that writes them. */
#include "probes/graph_output.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "core/decoder.h"
#include "probes/process_copy.h"

#ifndef __WALL
#define __WALL 0x40000000
#endif

/* They have 1, 2 and 0 references in turn. */
enum { OBJECTS = 51000 };

static void write_graph(struct st_graph_output* o) {
  static struct st_graph_reference references[ST_GRAPH_MAX_REFERENCES];
  for (uint32_t i = 0; i < ST_GRAPH_MAX_REFERENCES; i++)
    references[i] = (struct st_graph_reference){UINT32_MAX - i, i};
  for (uint32_t i = 1; i <= OBJECTS; i++)
    st_graph_object(o, i, 7, 1000 + i, references, i % 3);
  st_graph_object(o, OBJECTS + 1, 7, 0, references, ST_GRAPH_MAX_REFERENCES);
  st_graph_root(o, 1, ST_ROOT_STICKY_CLASS);
  st_graph_type(o, 7, "shop.Order", 10);
  st_graph_field(o, 1, "name", 4);
  st_graph_finish(o);
}

struct found {
  uint64_t objects, references, roots, types, fields, parts;
};

static void count_references(struct st_field object, struct found* f) {
  struct st_decoder d;
  struct st_field field;
  st_decoder_init(&d, object.data, object.size);
  while (st_decoder_next(&d, &field)) {
    const uint8_t *p = field.data, *end = field.data + field.size;
    uint64_t value;
    for (; field.number == 5 && p < end; f->references++) {
      p = st_get_varint(p, end, &value);
      CHECK(p);
    }
  }
}

static void read_part(const uint8_t* data, size_t size, struct found* f) {
  struct st_decoder d;
  struct st_field field;
  f->parts++;
  st_decoder_init(&d, data, size);
  while (st_decoder_next(&d, &field)) {
    f->objects += field.number == 2;
    f->fields += field.number == 4;
    f->roots += field.number == 7;
    f->types += field.number == 9;
    if (field.number == 2)
      count_references(field, f);
  }
}

static bool read_all(int fd, uint8_t* data, size_t size) {
  for (ssize_t n; size; data += n, size -= (size_t)n)
    if ((n = read(fd, data, size)) <= 0)
      return false;
  return true;
}

static void check_graph(int fd) {
  static uint8_t part[1 << 20];
  struct found f = {0};
  uint32_t size = 1;
  while (size) {
    CHECK(read_all(fd, (uint8_t*)&size, sizeof size));
    CHECK(size <= sizeof part && read_all(fd, part, size));
    if (size)
      read_part(part, size, &f);
  }
  CHECK_EQ(f.objects, OBJECTS + 1);
  CHECK_EQ(f.references, OBJECTS + ST_GRAPH_MAX_REFERENCES);
  CHECK_EQ(f.roots, 1);
  CHECK_EQ(f.types, 1);
  CHECK_EQ(f.fields, 1);
  CHECK(f.parts > 10);
  CHECK(!read_all(fd, part, 1));
}

static void run(void* self) {
  struct st_graph_output o;
  int fd = *(const int*)self;
  if (st_graph_output_init(&o, fd) && fcntl(fd - 1, F_GETFD) < 0)
    write_graph(&o);
}

static int ended;

static void on_child(int number) {
  ended += number == SIGCHLD;
}

static void copy_writes_a_graph_and_is_not_noticed(void) {
  int fds[2], status = -1;
  CHECK(pipe(fds) == 0);
  signal(SIGCHLD, on_child);
  pid_t pid = st_process_copy(run, &fds[1], fds[1]);
  CHECK(pid > 0);
  close(fds[1]);
  check_graph(fds[0]);
  CHECK(waitpid(-1, &status, 0) < 0 && errno == ECHILD);
  CHECK_EQ(waitpid(pid, &status, __WALL), pid);
  CHECK_EQ(status, 0);
  CHECK_EQ(ended, 0);
  close(fds[0]);
}

static void* write_to_closed_pipe(void* self) {
  struct st_graph_output* o = self;
  write_graph(o);
  return NULL;
}

static void writing_ends_when_the_reader_is_gone(void) {
  struct st_graph_output o;
  pthread_t thread;
  int fds[2];
  signal(SIGPIPE, SIG_IGN);
  CHECK(pipe(fds) == 0);
  CHECK(st_graph_output_init(&o, fds[1]));
  CHECK(pthread_create(&thread, NULL, write_to_closed_pipe, &o) == 0);
  close(fds[0]);
  pthread_join(thread, NULL);
  CHECK(o.failed);
  close(fds[1]);
}

int main(void) {
  RUN(copy_writes_a_graph_and_is_not_noticed);
  RUN(writing_ends_when_the_reader_is_gone);
  return 0;
}
