#include "fork_guard.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/* An object with two mutexes.  Its handler checks that both are locked. */
struct object {
  char name;
  pthread_mutex_t outer, inner;
  struct st_fork_entry fork;
};

static char g_log[64];

static bool is_locked(pthread_mutex_t* mutex) {
  int error = pthread_mutex_trylock(mutex);
  if (!error)
    pthread_mutex_unlock(mutex);
  return error == EBUSY;
}

static void note_child(void* self) {
  struct object* o = self;
  bool held = is_locked(&o->outer) && is_locked(&o->inner);
  size_t size = strlen(g_log);
  snprintf(g_log + size, sizeof g_log - size, "%c%s ", o->name,
           held ? "" : "!");
}

static void init(struct object* o, char name) {
  o->name = name;
  pthread_mutex_init(&o->outer, NULL);
  pthread_mutex_init(&o->inner, NULL);
  o->fork = (struct st_fork_entry){
      .mutexes = {&o->outer, &o->inner}, .child = note_child, .self = o};
  st_fork_register(&o->fork);
}

static bool is_free(struct object* o) {
  return !is_locked(&o->outer) && !is_locked(&o->inner);
}

static void wait_for(pid_t pid) {
  int status;
  CHECK_EQ(waitpid(pid, &status, 0), pid);
  CHECK_EQ(status, 0);
}

/* Forks, and checks which handlers were called in the child. */
static void expect(const char* in_child) {
  g_log[0] = 0;
  pid_t pid = fork();
  if (pid == 0)
    _exit(strcmp(g_log, in_child) == 0 ? 0 : 1);
  wait_for(pid);
  CHECK_EQ(strcmp(g_log, ""), 0);
}

static void child_handlers_run_oldest_first_with_their_mutexes_locked(void) {
  static struct object one, two, three;
  init(&one, '1');
  init(&two, '2');
  init(&three, '3');
  expect("1 2 3 ");
  st_fork_unregister(&two.fork);
  expect("1 3 ");
  st_fork_unregister(&three.fork);
  expect("1 ");
  st_fork_unregister(&one.fork);
  expect("");
}

static void mutexes_are_free_after_a_fork_in_both_processes(void) {
  static struct object one, two;
  init(&one, '1');
  init(&two, '2');
  pid_t pid = fork();
  if (pid == 0)
    _exit(is_free(&one) && is_free(&two) ? 0 : 1);
  wait_for(pid);
  CHECK(is_free(&one) && is_free(&two));
  st_fork_unregister(&two.fork);
  st_fork_unregister(&one.fork);
}

static void* fork_once(void* unused) {
  pid_t pid = fork();
  if (pid == 0)
    _exit(0);
  wait_for(pid);
  return unused;
}

static void fork_locks_the_newest_entry_first(void) {
  static struct object one, two, three;
  init(&one, '1');
  init(&two, '2');
  init(&three, '3');
  pthread_mutex_lock(&two.inner);
  pthread_t forking;
  CHECK_EQ(pthread_create(&forking, NULL, fork_once, NULL), 0);
  while (!is_locked(&two.outer))
    sched_yield();
  CHECK(is_locked(&three.outer) && is_locked(&three.inner));
  CHECK(is_free(&one));
  pthread_mutex_unlock(&two.inner);
  pthread_join(forking, NULL);
  st_fork_unregister(&three.fork);
  st_fork_unregister(&two.fork);
  st_fork_unregister(&one.fork);
}

static void entry_may_have_no_mutex_and_no_handler(void) {
  struct object one = {.name = '1', .outer = PTHREAD_MUTEX_INITIALIZER};
  one.fork = (struct st_fork_entry){.child = note_child, .self = &one};
  struct st_fork_entry nothing = {0};
  st_fork_register(&one.fork);
  st_fork_register(&nothing);
  expect("1! ");
  st_fork_unregister(&nothing);
  st_fork_unregister(&one.fork);
}

static void child_can_fork_and_unregister(void) {
  static struct object one;
  init(&one, '1');
  pid_t pid = fork();
  if (pid == 0) {
    expect("1 ");
    st_fork_unregister(&one.fork);
    expect("");
    _exit(0);
  }
  wait_for(pid);
  st_fork_unregister(&one.fork);
}

int main(void) {
  RUN(child_handlers_run_oldest_first_with_their_mutexes_locked);
  RUN(mutexes_are_free_after_a_fork_in_both_processes);
  RUN(fork_locks_the_newest_entry_first);
  RUN(entry_may_have_no_mutex_and_no_handler);
  RUN(child_can_fork_and_unregister);
  return 0;
}
