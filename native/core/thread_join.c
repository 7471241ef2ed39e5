#include "thread_join.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Returns whether the kernel still has a thread with this id.  Returns false
 * also if a seccomp filter refuses the system call. */
static bool exists(pid_t kernel_id) {
  return syscall(SYS_tgkill, getpid(), kernel_id, 0) == 0;
}

void st_thread_join(pthread_t thread, const pid_t* kernel_id) {
  const struct timespec pause = {.tv_nsec = 100 * 1000};
  pthread_join(thread, NULL);
  for (int i = 0; i < ST_JOIN_LIMIT_MS * 10 && exists(*kernel_id); i++)
    nanosleep(&pause, NULL);
}
