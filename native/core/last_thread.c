#include "last_thread.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "own_threads.h"

enum { POLL_MS = 20 };

static pthread_key_t key;

/* Whether /proc/self/task/TID/stat, as "TID (name) state ...", is that of a
 * thread of the program that has not ended. */
static bool is_of_program(const char* stat) {
  const char *name = strchr(stat, '('), *end = strrchr(stat, ')');
  if (!name || !end || end[1] != ' ')
    return false;
  bool has_ended = strchr("ZX", end[2]) != NULL;
  return !has_ended && !st_is_own_thread(name + 1);
}

/* Returns whether the thread belongs to the program and has not ended; a thread
 * that is gone has. */
static bool runs_program(int tasks, const char* tid) {
  char path[32], stat[256];
  snprintf(path, sizeof path, "%.20s/stat", tid);
  int file = openat(tasks, path, O_RDONLY | O_CLOEXEC);
  ssize_t size = file < 0 ? 0 : read(file, stat, sizeof stat - 1);
  if (file >= 0)
    close(file);
  stat[size > 0 ? size : 0] = 0;
  return is_of_program(stat);
}

/* Whether the program has another thread than the calling one.  Where /proc
 * can't be read, it seems to have one. */
static bool has_others(void) {
  DIR* tasks = opendir("/proc/self/task");
  if (!tasks)
    return true;
  long own = syscall(SYS_gettid);
  bool found = false;
  for (struct dirent* e; !found && (e = readdir(tasks));)
    found = e->d_name[0] != '.' && atol(e->d_name) != own &&
            runs_program(dirfd(tasks), e->d_name);
  closedir(tasks);
  return found;
}

static void* wait_for_others(void* unused) {
  (void)unused;
  prctl(PR_SET_NAME, ST_OWN_THREADS "end");
  const struct timespec pause = {.tv_nsec = POLL_MS * 1000000};
  while (has_others())
    nanosleep(&pause, NULL);
  exit(0);
}

static void end_process(void) {
  pthread_t thread;
  sigset_t all;
  if (!has_others())
    exit(0);
  sigfillset(&all); /* Signals are for the program's threads.  This one ends. */
  pthread_sigmask(SIG_SETMASK, &all, NULL);
  if (pthread_create(&thread, NULL, wait_for_others, NULL) == 0)
    pthread_detach(thread);
}

/* Called when the thread ends.  The program's destructors come first: this one
 * acts in the last round. */
static void on_end(void* value) {
  uintptr_t round = (uintptr_t)value;
  if (round < PTHREAD_DESTRUCTOR_ITERATIONS)
    pthread_setspecific(key, (void*)(round + 1));
  else
    end_process();
}

static void make_key(void) {
  pthread_key_create(&key, on_end);
}

void st_last_thread_prepare(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, make_key);
}

void st_last_thread_watch(void) {
  pthread_setspecific(key, (void*)1);
}
