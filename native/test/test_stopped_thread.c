/* Tests of stopped threads: a child process counts, and is stopped. */
#include "probes/stopped_thread.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { LIMIT_NS = 1000000000 };

struct shared {
  atomic_ulong count;
  atomic_int signals;
};

static struct shared* shared;

static void on_signal(int number) {
  (void)number;
  shared->signals++;
}

static pid_t start_counting(void) {
  pid_t pid = fork();
  if (pid == 0) {
    signal(SIGUSR1, on_signal);
    while (1)
      shared->count++;
  }
  unsigned long first = shared->count;
  while (shared->count == first)
    usleep(100);
  return pid;
}

static void end(pid_t pid) {
  kill(pid, SIGKILL);
  waitpid(pid, NULL, 0);
}

static void it_runs_on(void) {
  unsigned long first = shared->count;
  while (shared->count == first)
    usleep(100);
}

/* Emulators have no ptrace. */
static bool can_stop(void) {
  pid_t pid = start_counting();
  struct st_stopped_thread t = {0};
  bool can = st_stopped_thread_stop(&t, pid, LIMIT_NS) == ST_STOP_DONE;
  end(pid);
  return can;
}

static void thread_stands_still_until_it_is_released(void) {
  pid_t pid = start_counting();
  struct st_stopped_thread t = {0};
  struct st_registers r;
  CHECK_EQ(st_stopped_thread_stop(&t, pid, LIMIT_NS), ST_STOP_DONE);
  unsigned long count = shared->count;
  CHECK(st_stopped_thread_registers(&t, &r));
  CHECK(r.pc && r.values[ST_UNWIND_SP]);
  CHECK(r.known >> ST_UNWIND_SP & 1);
  usleep(10000);
  CHECK_EQ(shared->count, count);
  st_stopped_thread_release(&t);
  CHECK_EQ(t.tid, 0);
  it_runs_on();
  end(pid);
}

static void signal_that_comes_meanwhile_is_passed_on(void) {
  pid_t pid = start_counting();
  for (int i = 1; i <= 50; i++) {
    struct st_stopped_thread t = {0};
    kill(pid, SIGUSR1);
    CHECK_EQ(st_stopped_thread_stop(&t, pid, LIMIT_NS), ST_STOP_DONE);
    if (i % 2)
      kill(pid, SIGUSR1); /* A signal that is pending already is one signal. */
    st_stopped_thread_release(&t);
    while (shared->signals == 0)
      usleep(100);
    it_runs_on();
    shared->signals = 0;
  }
  end(pid);
}

static void* stop_and_end(void* pid) {
  struct st_stopped_thread t = {0};
  CHECK_EQ(st_stopped_thread_stop(&t, *(pid_t*)pid, LIMIT_NS), ST_STOP_DONE);
  return NULL;
}

static void end_of_the_caller_releases_the_thread(void) {
  pid_t pid = start_counting();
  pthread_t thread;
  CHECK(!pthread_create(&thread, NULL, stop_and_end, &pid));
  pthread_join(thread, NULL);
  it_runs_on();
  end(pid);
}

static void thread_that_is_late_is_released_by_poll(void) {
  pid_t pid = start_counting();
  struct st_stopped_thread t = {0};
  enum st_stop_result result = ST_STOP_DONE;
  while (result == ST_STOP_DONE) { /* It may stop at once. */
    result = st_stopped_thread_stop(&t, pid, 0);
    if (result == ST_STOP_DONE)
      st_stopped_thread_release(&t);
  }
  CHECK_EQ(result, ST_STOP_LATE);
  while (!st_stopped_thread_poll(&t))
    usleep(100);
  it_runs_on();
  CHECK(st_stopped_thread_poll(&t));
  end(pid);
}

static void thread_that_has_ended_is_gone(void) {
  struct st_stopped_thread t = {0};
  pid_t pid = start_counting();
  end(pid);
  CHECK_EQ(st_stopped_thread_stop(&t, pid, LIMIT_NS), ST_STOP_GONE);
  CHECK_EQ(t.tid, 0);
}

static void thread_that_ends_while_it_is_stopped_is_let_go(void) {
  struct st_stopped_thread t = {0};
  struct st_registers r;
  pid_t pid = start_counting();
  CHECK_EQ(st_stopped_thread_stop(&t, pid, LIMIT_NS), ST_STOP_DONE);
  kill(pid, SIGKILL);
  while (st_stopped_thread_registers(&t, &r))
    usleep(100);
  st_stopped_thread_release(&t);
  CHECK_EQ(t.tid, 0);
  int status;
  CHECK_EQ(waitpid(pid, &status, 0), pid);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void zombie_is_gone(void) {
  pid_t pid = start_counting();
  kill(pid, SIGKILL);
  siginfo_t info;
  CHECK(!waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT));
  struct st_stopped_thread t = {0};
  CHECK_EQ(st_stopped_thread_stop(&t, pid, LIMIT_NS), ST_STOP_GONE);
  CHECK_EQ(waitpid(pid, NULL, 0), pid);
}

static void* stop_too(void* pid) {
  struct st_stopped_thread t = {0};
  CHECK_EQ(st_stopped_thread_stop(&t, *(pid_t*)pid, LIMIT_NS), ST_STOP_REFUSED);
  return NULL;
}

static void thread_that_another_traces_is_refused(void) {
  pid_t pid = start_counting();
  struct st_stopped_thread t = {0};
  pthread_t thread;
  CHECK_EQ(st_stopped_thread_stop(&t, pid, LIMIT_NS), ST_STOP_DONE);
  CHECK(!pthread_create(&thread, NULL, stop_too, &pid));
  pthread_join(thread, NULL);
  st_stopped_thread_release(&t);
  end(pid);
}

/* The end is waited for by the parent, whichever moment it has. */
static void end_of_a_child_is_left_to_its_parent(void) {
  for (int i = 0; i < 50; i++) {
    pid_t pid = start_counting();
    struct st_stopped_thread t = {0};
    if (st_stopped_thread_stop(&t, pid, 0) == ST_STOP_DONE)
      st_stopped_thread_release(&t);
    kill(pid, SIGKILL);
    while (!st_stopped_thread_poll(&t))
      usleep(10);
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  }
}

static void waiting_parent_sees_a_stop_and_may_leave_it(void) {
  pid_t pid = start_counting();
  struct st_stopped_thread t = {0};
  siginfo_t info = {0};
  CHECK_EQ(st_stopped_thread_stop(&t, pid, LIMIT_NS), ST_STOP_DONE);
  CHECK(!waitid(P_PID, (id_t)pid, &info, WEXITED | WSTOPPED | WNOWAIT));
  CHECK_EQ(info.si_code, CLD_TRAPPED);
  st_stopped_thread_release(&t);
  it_runs_on();
  end(pid);
}

int main(void) {
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED || !can_stop())
    return 0;
  RUN(thread_stands_still_until_it_is_released);
  RUN(signal_that_comes_meanwhile_is_passed_on);
  RUN(end_of_the_caller_releases_the_thread);
  RUN(thread_that_is_late_is_released_by_poll);
  RUN(thread_that_has_ended_is_gone);
  RUN(thread_that_ends_while_it_is_stopped_is_let_go);
  RUN(zombie_is_gone);
  RUN(thread_that_another_traces_is_refused);
  RUN(end_of_a_child_is_left_to_its_parent);
  RUN(waiting_parent_sees_a_stop_and_may_leave_it);
  return 0;
}
