/* Tests of waiting threads: texts of the kernel's file, and this thread's. */
#include "probes/waiting_thread.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"

static void second_number_is_the_time_of_waiting(void) {
  uint64_t ns = 0;
  CHECK(st_schedstat_waited_ns("47 1100 3\n", &ns));
  CHECK_EQ(ns, 1100);
  CHECK(st_schedstat_waited_ns("0 0 0\n", &ns));
  CHECK_EQ(ns, 0);
}

static void text_without_two_numbers_is_refused(void) {
  uint64_t ns;
  CHECK(!st_schedstat_waited_ns("", &ns));
  CHECK(!st_schedstat_waited_ns("47\n", &ns));
  CHECK(!st_schedstat_waited_ns("sleeping\n", &ns));
}

static void time_of_a_thread_never_falls(void) {
  uint64_t own = (uint64_t)syscall(SYS_gettid), before, after;
  if (!st_thread_waited_ns(own, &before))
    return; /* A kernel without these numbers. */
  CHECK(st_thread_waited_ns(own, &after));
  CHECK(after >= before);
}

static void thread_of_another_process_has_no_time(void) {
  uint64_t ns;
  CHECK(!st_thread_waited_ns(0, &ns));
}

int main(void) {
  RUN(second_number_is_the_time_of_waiting);
  RUN(text_without_two_numbers_is_refused);
  RUN(time_of_a_thread_never_falls);
  RUN(thread_of_another_process_has_no_time);
  return 0;
}
