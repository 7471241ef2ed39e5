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

static void joined_thread_is_not_counted(void) {
  unsigned before = count_threads();
  for (int i = 0; i < 2000; i++) {
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, run, NULL), 0);
    st_thread_join(thread, &g_kernel_id);
    CHECK_EQ(count_threads(), before);
  }
}

int main(void) {
  RUN(joined_thread_is_not_counted);
  return 0;
}
