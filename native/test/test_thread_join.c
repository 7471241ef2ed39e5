#include "thread_join.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"
#include "thread_count.h"

static pid_t g_kernel_id;

static void* run(void* unused) {
  (void)unused;
  g_kernel_id = (pid_t)syscall(SYS_gettid);
  return NULL;
}

static void start_and_join(void) {
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, run, NULL), 0);
  st_thread_join(thread, &g_kernel_id);
}

static void joined_thread_is_not_counted(void) {
  /* ThreadSanitizer starts a thread of its own together with the first one. */
  start_and_join();
  unsigned before = count_threads();
  for (int i = 0; i < 2000; i++) {
    start_and_join();
    CHECK_EQ(count_threads(), before);
  }
}

int main(void) {
  RUN(joined_thread_is_not_counted);
  return 0;
}
