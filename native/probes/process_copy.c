#include "probes/process_copy.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST_FILES = 1 << 16 };

static void close_range_of(unsigned first, unsigned last) {
#ifdef SYS_close_range
  if (syscall(SYS_close_range, first, last, 0) == 0)
    return;
#endif
  for (unsigned fd = first; fd <= last && fd < MOST_FILES; fd++)
    close((int)fd);
}

static void be_killed_first(void) {
  int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0)
    return;
  (void)!write(fd, "1000", 4);
  close(fd);
}

static void run_copy(void (*run)(void*), void* self, int fd) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_DUMPABLE, 0);
  if (fd > 0)
    close_range_of(0, (unsigned)fd - 1);
  close_range_of((unsigned)fd + 1, ~0u);
  be_killed_first();
  run(self);
  _exit(0);
}

pid_t st_process_copy(void (*run)(void*), void* self, int fd) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pid_t pid = (pid_t)syscall(SYS_clone, 0, 0, 0, 0, 0);
  if (pid == 0)
    run_copy(run, self, fd);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return pid;
}
