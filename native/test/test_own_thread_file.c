/* The kernel's files of this process's threads. */
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"
#include "probes/own_thread_file.h"

static void check_name(const char* name) {
  char text[32];
  prctl(PR_SET_NAME, name);
  CHECK(st_read_own_thread_file((uint64_t)syscall(SYS_gettid), "comm", text,
                                sizeof text));
  CHECK(strncmp(text, name, strlen(name)) == 0);
}

static void* other_thread(void* unused) {
  check_name("other");
  return unused;
}

static void each_thread_has_its_own_files(void) {
  pthread_t thread;
  check_name("first");
  CHECK_EQ(pthread_create(&thread, NULL, other_thread, NULL), 0);
  pthread_join(thread, NULL);
}

static void text_is_cut_to_its_size(void) {
  char text[4];
  prctl(PR_SET_NAME, "longer");
  CHECK(st_read_own_thread_file((uint64_t)getpid(), "comm", text, sizeof text));
  CHECK(strcmp(text, "lon") == 0);
}

static void missing_file_is_reported(void) {
  char text[4];
  CHECK(!st_read_own_thread_file((uint64_t)getpid(), "none", text, 4));
  CHECK(!st_read_own_thread_file(1, "comm", text, 4));
}

int main(void) {
  RUN(each_thread_has_its_own_files);
  RUN(text_is_cut_to_its_size);
  RUN(missing_file_is_reported);
  return 0;
}
