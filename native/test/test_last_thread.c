/* The end of a forked child whose first thread is not the main one. */
#include "last_thread.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/* It lets no forked child of a process with threads start a thread. */
#ifdef __SANITIZE_THREAD__
enum { HAS_THREAD_SANITIZER = true };
#else
enum { HAS_THREAD_SANITIZER = false };
#endif

static sem_t named;
static int pipe_ends[2];
static bool has_other_thread;
static int status;

static void* stay(void* name) {
  prctl(PR_SET_NAME, name);
  sem_post(&named);
  for (;;)
    pause();
  return NULL;
}

static void* end_when_told(void* unused) {
  char byte;
  (void)unused;
  close(pipe_ends[1]);
  CHECK_EQ(read(pipe_ends[0], &byte, 1), 0);
  _exit(7);
}

static void start_thread(void* (*run)(void*), void* argument) {
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, run, argument), 0);
  pthread_detach(thread);
}

/* The first thread of the child starts others, and returns. */
static void be_child(void) {
  st_last_thread_watch();
  start_thread(stay, "stretto-test");
  sem_wait(&named);
  if (has_other_thread)
    start_thread(end_when_told, NULL);
}

static void wait_until_first_thread_has_ended(pid_t child) {
  char path[64], stat[256] = "";
  snprintf(path, sizeof path, "/proc/%d/stat", (int)child);
  while (!strstr(stat, ") Z")) {
    sched_yield();
    FILE* file = fopen(path, "r");
    CHECK(file && fgets(stat, sizeof stat, file));
    fclose(file);
  }
}

static void* fork_in_thread(void* unused) {
  (void)unused;
  st_last_thread_prepare();
  pid_t child = fork();
  if (child == 0) {
    be_child();
    return NULL;
  }
  if (has_other_thread)
    wait_until_first_thread_has_ended(child);
  close(pipe_ends[1]);
  waitpid(child, &status, 0);
  return NULL;
}

static void run_child(bool with_other_thread) {
  pthread_t thread;
  has_other_thread = with_other_thread;
  CHECK_EQ(pipe(pipe_ends), 0);
  CHECK_EQ(pthread_create(&thread, NULL, fork_in_thread, NULL), 0);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  close(pipe_ends[0]);
}

static void child_with_only_our_threads_ends(void) {
  run_child(false);
  CHECK(WIFEXITED(status));
  CHECK_EQ(WEXITSTATUS(status), 0);
}

static void child_with_another_thread_continues(void) {
  run_child(true);
  CHECK(WIFEXITED(status));
  CHECK_EQ(WEXITSTATUS(status), 7);
}

int main(void) {
  sem_init(&named, 0, 0);
  if (!HAS_THREAD_SANITIZER) {
    RUN(child_with_only_our_threads_ends);
    RUN(child_with_another_thread_continues);
  }
  return 0;
}
