#include "fork_guard.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static char g_log[64];

static void note(const char* what, void* self) {
  size_t size = strlen(g_log);
  snprintf(g_log + size, sizeof g_log - size, "%s%s ", what, (const char*)self);
}

static void prepare(void* self) {
  note("p", self);
}
static void parent(void* self) {
  note("a", self);
}
static void child(void* self) {
  note("c", self);
}

static struct st_fork_entry entry(char* name) {
  return (struct st_fork_entry){
      .prepare = prepare, .parent = parent, .child = child, .self = name};
}

/* Forks, and compares the handlers that ran in both processes with the expected
 * ones. */
static void expect(const char* in_parent, const char* in_child) {
  g_log[0] = 0;
  pid_t pid = fork();
  if (pid == 0) {
    _exit(strcmp(g_log, in_child) == 0 ? 0 : 1);
  }
  int status;
  CHECK_EQ(waitpid(pid, &status, 0), pid);
  CHECK_EQ(status, 0);
  CHECK_EQ(strcmp(g_log, in_parent), 0);
}

static void handlers_lock_newest_first_and_release_oldest_first(void) {
  struct st_fork_entry one = entry("1"), two = entry("2"), three = entry("3");
  st_fork_register(&one);
  st_fork_register(&two);
  st_fork_register(&three);
  expect("p3 p2 p1 a1 a2 a3 ", "p3 p2 p1 c1 c2 c3 ");
  st_fork_unregister(&two);
  expect("p3 p1 a1 a3 ", "p3 p1 c1 c3 ");
  st_fork_unregister(&three);
  expect("p1 a1 ", "p1 c1 ");
  st_fork_unregister(&one);
  expect("", "");
}

static void handlers_may_be_missing(void) {
  struct st_fork_entry one = {.child = child, .self = "1"};
  st_fork_register(&one);
  expect("", "c1 ");
  st_fork_unregister(&one);
}

static void child_can_fork_and_unregister(void) {
  struct st_fork_entry one = entry("1");
  st_fork_register(&one);
  pid_t pid = fork();
  if (pid == 0) {
    expect("p1 a1 ", "p1 c1 ");
    st_fork_unregister(&one);
    expect("", "");
    _exit(0);
  }
  int status;
  CHECK_EQ(waitpid(pid, &status, 0), pid);
  CHECK_EQ(status, 0);
  st_fork_unregister(&one);
}

int main(void) {
  RUN(handlers_lock_newest_first_and_release_oldest_first);
  RUN(handlers_may_be_missing);
  RUN(child_can_fork_and_unregister);
  return 0;
}
