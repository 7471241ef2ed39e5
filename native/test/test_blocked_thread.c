/* Tests of blocked threads: texts of the kernel's file, and a thread that waits
 * in a system call. */
#include "probes/blocked_thread.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"

static const struct st_address_range kGil = {0x1000, 0x100};

static bool is_futex_blocked(unsigned address) {
  char text[64];
  snprintf(text, sizeof text, "%d 0x%x 0x189 0x0", (int)SYS_futex, address);
  return st_syscall_text_is_blocked(text, kGil);
}

static void thread_in_a_system_call_is_blocked(void) {
  CHECK(st_syscall_text_is_blocked("0 0x3 0x1000 0x2000 0x0", kGil));
  CHECK(is_futex_blocked(0xFFF));
  CHECK(is_futex_blocked(0x1100));
}

static void thread_that_waits_for_the_excepted_futex_is_not_blocked(void) {
  CHECK(!is_futex_blocked(0x1000));
  CHECK(!is_futex_blocked(0x10FF));
}

static void thread_without_a_system_call_is_not_blocked(void) {
  CHECK(!st_syscall_text_is_blocked("running\n", kGil));
  CHECK(!st_syscall_text_is_blocked("", kGil));
  CHECK(!st_thread_is_blocked(0, kGil));
}

static int pipe_ends[2];
static _Atomic uint64_t waiting_id;

static void* wait_for_pipe(void* unused) {
  waiting_id = (uint64_t)syscall(SYS_gettid);
  char byte;
  CHECK_EQ(read(pipe_ends[0], &byte, 1), 1);
  return unused;
}

/* Where the kernel does not offer the file, a thread is never found blocked. */
static void thread_that_reads_an_empty_pipe_is_blocked(void) {
  pthread_t thread;
  CHECK_EQ(pipe(pipe_ends), 0);
  CHECK_EQ(pthread_create(&thread, NULL, wait_for_pipe, NULL), 0);
  while (!waiting_id)
    poll(NULL, 0, 1);
  bool offered = access("/proc/self/syscall", R_OK) == 0;
  for (int i = 0; offered && !st_thread_is_blocked(waiting_id, kGil); i++) {
    CHECK(i < 60000);
    poll(NULL, 0, 1);
  }
  CHECK_EQ(write(pipe_ends[1], "x", 1), 1);
  pthread_join(thread, NULL);
  CHECK(!st_thread_is_blocked(waiting_id, kGil));
}

int main(void) {
  RUN(thread_in_a_system_call_is_blocked);
  RUN(thread_that_waits_for_the_excepted_futex_is_not_blocked);
  RUN(thread_without_a_system_call_is_not_blocked);
  RUN(thread_that_reads_an_empty_pipe_is_blocked);
  return 0;
}
