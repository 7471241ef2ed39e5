#include "io_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "check.h"
#include "high_fd.h"
#include "socket_pair.h"
#include "thread_count.h"

/* The fixture is a thread on one socket of a pair.  Its callback receives all
 * available bytes, and then does what the test has selected. */
enum action { GO_ON, STOP_READING, STOP_THREAD, DESTROY_THREAD };

static struct socket_pair g_pair;
static struct st_send_queue g_queue;
static struct st_io_thread* g_thread;
static pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t g_changed = PTHREAD_COND_INITIALIZER;
static unsigned g_calls;
static size_t g_bytes;
static bool g_saw_end;
static int g_stop_result;
static bool g_signals_blocked;
static enum action g_action;

static bool all_signals_blocked(void) {
  sigset_t set;
  pthread_sigmask(SIG_SETMASK, NULL, &set);
  return sigismember(&set, SIGINT) && sigismember(&set, SIGTERM) &&
         sigismember(&set, SIGUSR1) && sigismember(&set, SIGPROF);
}

/* Whether our end is closed: its number may be another file's by now. */
static atomic_bool g_closed;

static bool on_readable(void* self) {
  CHECK(self == &g_calls);
  char bytes[4096];
  ssize_t n = atomic_load(&g_closed)
                  ? -1
                  : recv(g_pair.ours, bytes, sizeof bytes, MSG_DONTWAIT);
  enum action action = g_action;
  if (action == STOP_THREAD)
    g_stop_result = st_io_thread_stop(g_thread);
  if (action == DESTROY_THREAD)
    st_io_thread_destroy(g_thread);
  pthread_mutex_lock(&g_mutex);
  g_calls++;
  if (n > 0)
    g_bytes += (size_t)n;
  if (n == 0)
    g_saw_end = true;
  g_signals_blocked = all_signals_blocked();
  pthread_cond_broadcast(&g_changed);
  pthread_mutex_unlock(&g_mutex);
  return n != 0 && action != STOP_READING;
}

static void open_thread(void) {
  g_pair = socket_pair_open();
  g_calls = 0;
  g_bytes = 0;
  g_saw_end = false;
  g_action = GO_ON;
  CHECK(st_send_queue_init(&g_queue, g_pair.ours, 1 << 20));
  g_thread = st_io_thread_create(g_pair.ours, &g_queue, on_readable, &g_calls);
  CHECK(g_thread != NULL);
}

static void close_thread(void) {
  if (g_thread)
    st_io_thread_destroy(g_thread);
  st_send_queue_destroy(&g_queue);
  socket_pair_close(&g_pair);
}

static void wait_for_calls(unsigned calls) {
  pthread_mutex_lock(&g_mutex);
  while (g_calls < calls)
    pthread_cond_wait(&g_changed, &g_mutex);
  pthread_mutex_unlock(&g_mutex);
}

static void send_byte(void) {
  CHECK_EQ(send(g_pair.theirs, "x", 1, 0), 1);
}

static void start(void) {
  CHECK_EQ(st_io_thread_start(g_thread), 0);
}

/* Receives exactly `size` bytes.  Blocks until they have arrived. */
static void receive(size_t size) {
  static char bytes[1 << 16];
  while (size > 0) {
    ssize_t n = recv(g_pair.theirs, bytes,
                     size < sizeof bytes ? size : sizeof bytes, 0);
    CHECK(n > 0);
    size -= (size_t)n;
  }
}

static void callback_runs_with_signals_blocked(void) {
  open_thread();
  CHECK(!st_io_thread_running(g_thread));
  start();
  CHECK(st_io_thread_running(g_thread));
  /* The signal mask of the test's own thread is unchanged. */
  CHECK(!all_signals_blocked());
  send_byte();
  wait_for_calls(1);
  CHECK(g_signals_blocked);
  send_byte();
  wait_for_calls(2);
  close_thread();
}

static void thread_can_be_stopped_and_started_again(void) {
  open_thread();
  for (unsigned i = 0; i < 3; i++) {
    start();
    start(); /* A second start of the thread has no effect. */
    send_byte();
    wait_for_calls(i + 1);
    CHECK_EQ(st_io_thread_stop(g_thread), 0);
    CHECK_EQ(st_io_thread_stop(g_thread), 0);
    CHECK(!st_io_thread_running(g_thread));
  }
  close_thread();
}

static void thread_that_was_asked_to_stop_can_be_started_again(void) {
  open_thread();
  st_io_thread_ask_to_stop(g_thread); /* It does not run: no effect. */
  for (unsigned i = 0; i < 3; i++) {
    start();
    send_byte();
    wait_for_calls(i + 1);
    st_io_thread_ask_to_stop(g_thread);
    st_io_thread_ask_to_stop(g_thread);
    CHECK_EQ(st_io_thread_stop(g_thread), 0);
    CHECK(!st_io_thread_running(g_thread));
  }
  close_thread();
}

static void input_that_came_before_the_start_is_reported(void) {
  open_thread();
  send_byte();
  start();
  wait_for_calls(1);
  close_thread();
}

static void unsent_bytes_are_sent_when_the_socket_has_room(void) {
  open_thread();
  start();
  uint8_t frame[10000] = {0};
  size_t size = 0;
  for (unsigned i = 0; i < 50; i++) {
    CHECK(st_send_queue_push(&g_queue, frame, sizeof frame, -1));
    size += sizeof frame;
  }
  /* The receive blocks for ever if the thread does not drain the queue. */
  receive(size);
  close_thread();
}

static void bytes_pushed_before_the_start_are_sent(void) {
  open_thread();
  uint8_t frame[100000] = {0};
  for (unsigned i = 0; i < 5; i++)
    CHECK(st_send_queue_push(&g_queue, frame, sizeof frame, -1));
  start();
  receive(5 * sizeof frame);
  close_thread();
}

static void closed_peer_is_reported_once(void) {
  open_thread();
  start();
  close(g_pair.theirs);
  g_pair.theirs = -1;
  wait_for_calls(1);
  CHECK(g_saw_end);
  /* The stop has joined the thread, so no further calls of the callback can
   * come. */
  CHECK_EQ(st_io_thread_stop(g_thread), 0);
  CHECK_EQ(g_calls, 1);
  close_thread();
}

static void thread_still_sends_after_the_callback_returned_false(void) {
  open_thread();
  g_action = STOP_READING;
  start();
  send_byte();
  wait_for_calls(1);
  send_byte();
  uint8_t frame[100000] = {0};
  for (unsigned i = 0; i < 5; i++)
    CHECK(st_send_queue_push(&g_queue, frame, sizeof frame, -1));
  receive(5 * sizeof frame);
  CHECK_EQ(st_io_thread_stop(g_thread), 0);
  CHECK_EQ(g_calls, 1);
  g_action = GO_ON;
  start(); /* After a new start the thread reads from the socket again. */
  wait_for_calls(2);
  close_thread();
}

static void stop_inside_the_callback_is_refused(void) {
  open_thread();
  g_action = STOP_THREAD;
  g_stop_result = 0;
  start();
  send_byte();
  wait_for_calls(1);
  CHECK_EQ(g_stop_result, EDEADLK);
  close_thread();
}

static void thread_ends_after_destroy_inside_the_callback(void) {
  unsigned before = count_threads();
  open_thread();
  g_action = DESTROY_THREAD;
  start();
  send_byte();
  wait_for_calls(1);
  g_thread = NULL;
  while (count_threads() > before)
    sched_yield();
  close_thread();
}

static void thread_without_a_queue_ends_when_the_callback_returns_false(void) {
  unsigned before = count_threads();
  open_thread();
  st_io_thread_destroy(g_thread);
  g_thread = st_io_thread_create(g_pair.ours, NULL, on_readable, &g_calls);
  CHECK(g_thread != NULL);
  g_action = STOP_READING;
  for (unsigned i = 1; i <= 2; i++) {
    send_byte();
    start();
    wait_for_calls(i);
    while (count_threads() > before)
      sched_yield();
    /* The thread has ended but is not joined yet. */
    CHECK(st_io_thread_running(g_thread));
    CHECK_EQ(st_io_thread_stop(g_thread), 0);
  }
  close_thread();
}

/* Runs `body` in a child process, because `body` breaks the descriptors of its
 * process. */
static void run_in_child(void (*body)(void)) {
  pid_t pid = fork();
  if (pid == 0) {
    /* With this alarm the test fails instead of blocking for ever. */
    alarm(20);
    body();
    _exit(0);
  }
  int status;
  CHECK_EQ(waitpid(pid, &status, 0), pid);
  CHECK_EQ(status, 0);
}

static void close_our_descriptors(void) {
  atomic_store(&g_closed, true);
  close(g_pair.ours);
  for (int fd = ST_HIGH_FD; fd < ST_HIGH_FD + 16; fd++)
    close(fd);
}

static void stop_without_descriptors(void) {
  start();
  send_byte();
  wait_for_calls(1); /* The thread is polling, or is about to poll. */
  close_our_descriptors();
  CHECK_EQ(st_io_thread_stop(g_thread), 0);
}

static void thread_can_be_stopped_after_its_descriptors_were_closed(void) {
  open_thread();
  run_in_child(stop_without_descriptors);
  close_thread();
}

static void hear_without_descriptors(void) {
  unsigned before = count_threads();
  start();
  send_byte();
  wait_for_calls(1);
  close_our_descriptors();
  do {
    /* This byte interrupts the running poll.  Nobody reads the byte: only the
     * parent process still has our end, and it does not read. */
    send(g_pair.theirs, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    sched_yield();
  } while (count_threads() > before);
  /* The stop joins the ended thread. */
  CHECK_EQ(st_io_thread_stop(g_thread), 0);
  CHECK(g_calls >= 2);
  unsigned calls = g_calls;
  start(); /* After a new start the thread reports the loss again. */
  wait_for_calls(calls + 1);
  CHECK_EQ(st_io_thread_stop(g_thread), 0);
  CHECK_EQ(g_calls, calls + 1);
}

static void thread_calls_back_and_ends_after_its_descriptors_were_closed(void) {
  open_thread();
  run_in_child(hear_without_descriptors);
  close_thread();
}

static void forked_child_has_no_thread(void) {
  open_thread();
  start();
  pid_t pid = fork();
  if (pid == 0) {
    bool good = !st_io_thread_running(g_thread);
    good = good && st_io_thread_stop(g_thread) == 0;
    /* The child must not join the thread of its parent. */
    st_io_thread_destroy(g_thread);
    _exit(good ? 0 : 1);
  }
  int status;
  CHECK_EQ(waitpid(pid, &status, 0), pid);
  CHECK_EQ(status, 0);
  send_byte(); /* The thread of the parent continues. */
  wait_for_calls(1);
  close_thread();
}

/* Makes all descriptors of the process refer to a file, except the standard
 * ones. */
static void replace_all_descriptors(FILE* file) {
  for (int fd = 3; fd < 2 * ST_HIGH_FD; fd++) {
    if (fd != fileno(file) && fcntl(fd, F_GETFD) >= 0)
      CHECK_EQ(dup2(fileno(file), fd), fd);
  }
}

static void stop_ends_a_poll_of_replaced_descriptors(void) {
  open_thread();
  start();
  send_byte();
  wait_for_calls(1);
  FILE* file = tmpfile();
  CHECK_EQ(fputs("of the program", file) >= 0, 1);
  rewind(file);
  replace_all_descriptors(file);
  /* The stop blocks for ever if the poll is not ended. */
  CHECK_EQ(st_io_thread_stop(g_thread), 0);
  /* The thread detects that its descriptor now refers to a file of the
   * program. */
  start();
  CHECK_EQ(st_io_thread_stop(g_thread), 0);
  st_io_thread_destroy(g_thread);
  g_thread = NULL;
  char text[32];
  CHECK_EQ(lseek(fileno(file), 0, SEEK_CUR), 0);
  CHECK_EQ(read(fileno(file), text, sizeof text), 14);
  for (int fd = 3; fd < 2 * ST_HIGH_FD; fd++) {
    if (fd != fileno(file))
      close(fd);
  }
  fclose(file);
  st_send_queue_destroy(&g_queue);
}

int main(void) {
  RUN(callback_runs_with_signals_blocked);
  RUN(thread_can_be_stopped_and_started_again);
  RUN(thread_that_was_asked_to_stop_can_be_started_again);
  RUN(input_that_came_before_the_start_is_reported);
  RUN(unsent_bytes_are_sent_when_the_socket_has_room);
  RUN(bytes_pushed_before_the_start_are_sent);
  RUN(closed_peer_is_reported_once);
  RUN(thread_still_sends_after_the_callback_returned_false);
  RUN(stop_inside_the_callback_is_refused);
  RUN(thread_ends_after_destroy_inside_the_callback);
  RUN(thread_without_a_queue_ends_when_the_callback_returns_false);
  RUN(thread_can_be_stopped_after_its_descriptors_were_closed);
  RUN(thread_calls_back_and_ends_after_its_descriptors_were_closed);
  RUN(forked_child_has_no_thread);
  RUN(stop_ends_a_poll_of_replaced_descriptors);
  return 0;
}
