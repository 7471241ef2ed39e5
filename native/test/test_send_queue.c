#include "send_queue.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "check.h"
#include "socket_pair.h"

static struct socket_pair g_pair;
static struct st_send_queue g_queue;
static uint8_t g_received[1 << 22];

static void open_queue(size_t limit) {
  g_pair = socket_pair_open();
  CHECK(st_send_queue_init(&g_queue, g_pair.ours, limit));
}

static void close_queue(void) {
  st_send_queue_destroy(&g_queue);
  socket_pair_close(&g_pair);
}

static bool push_run(uint8_t byte, size_t size) {
  uint8_t* frame = malloc(size);
  memset(frame, byte, size);
  bool taken = st_send_queue_push(&g_queue, frame, size, -1);
  free(frame);
  return taken;
}

static size_t receive_all(void) {
  return socket_pair_receive_all(&g_pair, g_received, sizeof g_received);
}

/* Pushes frames of 1000 bytes until a frame is refused.  Each byte of a frame
 * is the frame's number.  Returns the number of accepted frames. */
static unsigned fill(void) {
  unsigned count = 0;
  while (push_run((uint8_t)count, 1000))
    count++;
  return count;
}

static size_t drain_and_receive(uint8_t* out) {
  size_t total = 0, n;
  do {
    n = socket_pair_receive_all(&g_pair, out + total, 4000);
    total += n;
    st_send_queue_drain(&g_queue);
  } while (n > 0);
  return total;
}

static void check_runs(const uint8_t* data, unsigned count) {
  for (unsigned i = 0; i < count; i++) {
    for (unsigned j = 0; j < 1000; j++)
      CHECK_EQ(data[i * 1000 + j], (uint8_t)i);
  }
}

static void frames_are_sent_at_once_if_the_socket_takes_them(void) {
  open_queue(1 << 16);
  CHECK(push_run('a', 10));
  CHECK_EQ(st_send_queue_pending(&g_queue), 0);
  CHECK_EQ(receive_all(), 10);
  close_queue();
}

static void unsent_bytes_stay_in_order(void) {
  open_queue(1 << 16);
  unsigned count = fill();
  CHECK(st_send_queue_pending(&g_queue) > 60000);
  CHECK_EQ(atomic_load(&g_queue.frames_refused), 1);
  CHECK_EQ(drain_and_receive(g_received), count * 1000);
  check_runs(g_received, count);
  CHECK_EQ(st_send_queue_pending(&g_queue), 0);
  close_queue();
}

static void later_push_is_sent_after_unsent_bytes(void) {
  open_queue(1 << 16);
  unsigned count = fill();
  size_t size = receive_all();
  CHECK(push_run((uint8_t)count, 1000));
  size += drain_and_receive(g_received + size);
  CHECK_EQ(size, (count + 1) * 1000);
  check_runs(g_received, count + 1);
  close_queue();
}

static void frames_above_the_limits_are_refused_as_a_whole(void) {
  open_queue(2 * ST_IPC_MAX_FRAME);
  CHECK(!push_run('x', ST_IPC_MAX_FRAME + 1));
  CHECK(!push_run('x', 0));
  CHECK_EQ(receive_all(), 0);
  CHECK(push_run('x', ST_IPC_MAX_FRAME));
  uint8_t args[1] = {0};
  CHECK_EQ(
      st_send_queue_invoke(&g_queue, 1, 1, args, ST_IPC_MAX_FRAME, true, -1),
      0);
  close_queue();
}

static void request_ids_count_accepted_frames(void) {
  open_queue(1 << 16);
  CHECK_EQ(st_send_queue_next_request_id(&g_queue), 1);
  CHECK_EQ(st_send_queue_invoke(&g_queue, 3, 4, "ab", 2, true, -1), 2);
  fill();
  CHECK_EQ(st_send_queue_invoke(&g_queue, 3, 4, g_received, 2000, true, -1), 0);
  drain_and_receive(g_received);
  CHECK_EQ(st_send_queue_invoke(&g_queue, 3, 4, NULL, 0, false, -1), 3);
  struct st_ipc_invoke invoke;
  size_t size = receive_all();
  CHECK_EQ(st_ipc_frame_get_invoke(g_received, size, &invoke), size);
  CHECK_EQ(invoke.request_id, 3);
  CHECK_EQ(invoke.service_id, 3);
  CHECK_EQ(invoke.method_id, 4);
  CHECK_EQ(invoke.args_size, 0);
  CHECK(!invoke.drop_reply);
  close_queue();
}

static ino_t inode(int fd) {
  struct stat s;
  CHECK_EQ(fstat(fd, &s), 0);
  return s.st_ino;
}

static void descriptor_is_sent_with_its_frame(void) {
  open_queue(1 << 16);
  int pipe_fds[2];
  CHECK_EQ(pipe2(pipe_fds, O_CLOEXEC), 0);
  ino_t ino = inode(pipe_fds[0]);
  unsigned count = fill();
  /* The queue has room again, at the end of its memory. */
  size_t before = receive_all();
  st_send_queue_drain(&g_queue);
  CHECK(st_send_queue_push(&g_queue, "FD", 2, pipe_fds[0]));
  close(pipe_fds[0]); /* The queue has its own duplicate of the descriptor. */
  CHECK(push_run((uint8_t)(count + 1), 1000));

  size_t start = count * 1000, total = before, n;
  bool seen = false;
  do {
    int fd;
    n = socket_pair_receive(&g_pair, g_received + total, 1000, &fd);
    if (fd >= 0) {
      CHECK(!seen && total <= start && start < total + n);
      CHECK_EQ(inode(fd), ino);
      close(fd);
      seen = true;
    }
    total += n;
    st_send_queue_drain(&g_queue);
  } while (n > 0);
  CHECK(seen);
  CHECK_EQ(total, start + 2 + 1000);
  CHECK_EQ(memcmp(g_received + start, "FD", 2), 0);
  close(pipe_fds[1]);
  close_queue();
}

static void unsent_descriptors_are_closed(void) {
  open_queue(1 << 16);
  fill();
  receive_all();
  int pipe_fds[2];
  CHECK_EQ(pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK), 0);
  unsigned count = 0;
  while (count < ST_SEND_QUEUE_MAX_FDS &&
         st_send_queue_push(&g_queue, "x", 1, pipe_fds[1]))
    count++;
  CHECK(count > 0);
  while (st_send_queue_push(&g_queue, "x", 1, pipe_fds[1])) {
  }
  CHECK(push_run('y', 1) || st_send_queue_pending(&g_queue) > 0);
  close(pipe_fds[1]);
  close_queue();
  char byte;
  /* The end of file shows that all duplicates of the descriptor are closed. */
  CHECK_EQ(read(pipe_fds[0], &byte, 1), 0);
  close(pipe_fds[0]);
}

static void bad_descriptor_is_refused(void) {
  open_queue(1 << 16);
  CHECK(!st_send_queue_push(&g_queue, "x", 1, 1 << 20));
  CHECK_EQ(receive_all(), 0);
  close_queue();
}

static void broken_connection_refuses_all_frames(void) {
  open_queue(1 << 16);
  fill();
  close(g_pair.theirs);
  g_pair.theirs = -1;
  /* The write to the socket fails with EPIPE, without a signal. */
  st_send_queue_drain(&g_queue);
  CHECK(atomic_load(&g_queue.broken));
  CHECK_EQ(st_send_queue_pending(&g_queue), 0);
  CHECK(!push_run('x', 1));
  CHECK_EQ(st_send_queue_invoke(&g_queue, 1, 1, NULL, 0, true, -1), 0);
  close_queue();
}

static bool was_woken(const struct st_wake_pipe* wake) {
  char byte;
  return recv(wake->polled.fd, &byte, 1, MSG_DONTWAIT) == 1;
}

static void unsent_bytes_wake_the_poller(void) {
  struct st_wake_pipe wake;
  open_queue(1 << 16);
  CHECK(st_wake_pipe_open(&wake));
  st_send_queue_set_wake(&g_queue, &wake);
  CHECK(push_run('x', 1));
  CHECK(!was_woken(&wake)); /* The push has left no bytes in the queue. */
  fill();
  CHECK(was_woken(&wake));
  st_send_queue_set_wake(&g_queue, NULL);
  st_wake_pipe_close(&wake);
  close_queue();
}

static unsigned g_calls;
static void count_call(void* self) {
  CHECK(self == &g_queue);
  g_calls++;
}

static void room_listener_is_called_after_a_refused_frame(void) {
  open_queue(1 << 16);
  g_calls = 0;
  st_send_queue_set_room_listener(&g_queue, count_call, &g_queue);
  st_send_queue_drain(&g_queue);
  /* No frame was refused, so the listener is not called. */
  CHECK_EQ(g_calls, 0);
  fill();
  st_send_queue_drain(&g_queue);
  /* The queue has no room yet, so the listener is not called. */
  CHECK_EQ(g_calls, 0);
  drain_and_receive(g_received);
  CHECK_EQ(g_calls, 1);
  st_send_queue_set_room_listener(&g_queue, NULL, NULL);
  close_queue();
}

static void push_that_makes_room_wakes_the_poller(void) {
  open_queue(1 << 16);
  fill();
  struct st_wake_pipe wake;
  CHECK(st_wake_pipe_open(&wake));
  st_send_queue_set_wake(&g_queue, &wake);
  /* Another thread sends all bytes of the queue, so POLLOUT will not come. */
  do {
    receive_all();
    push_run('x', 1);
  } while (st_send_queue_pending(&g_queue) > 0);
  CHECK(was_woken(&wake));
  st_send_queue_set_wake(&g_queue, NULL);
  st_wake_pipe_close(&wake);
  close_queue();
}

/* Another socket takes the descriptor number of the queue's socket.  That may
 * happen in a daemon, which closes all descriptors and then opens others. */
static void file_that_got_the_sockets_number_gets_no_byte(void) {
  open_queue(1 << 16);
  fill();
  struct socket_pair other = socket_pair_open();
  CHECK_EQ(dup2(other.ours, g_pair.ours), g_pair.ours);
  st_send_queue_drain(&g_queue);
  CHECK(atomic_load(&g_queue.broken));
  CHECK(!push_run('x', 1));
  int fd;
  CHECK_EQ(socket_pair_receive(&other, g_received, sizeof g_received, &fd), 0);
  socket_pair_close(&other);
  close_queue();
}

static void replaced_queued_descriptor_is_not_closed(void) {
  open_queue(1 << 16);
  fill();
  int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  receive_all();
  while (push_run('x', 1000)) {
  }
  receive_all();
  CHECK(st_send_queue_push(&g_queue, "y", 1, fd));
  CHECK_EQ(g_queue.fd_count, 1);
  int waiting = g_queue.fds[0].fd.fd;
  CHECK_EQ(dup2(g_pair.ours, waiting), waiting);
  shutdown(g_pair.ours, SHUT_RDWR);
  st_send_queue_drain(&g_queue);
  CHECK(g_queue.broken);
  CHECK_EQ(close(waiting), 0);
  close(fd);
  close_queue();
}

static void room_can_be_checked_without_a_frame(void) {
  open_queue(1 << 16);
  CHECK(st_send_queue_has_room(&g_queue, 1 << 16));
  CHECK(!st_send_queue_has_room(&g_queue, (1 << 16) + 1));
  fill();
  CHECK(!st_send_queue_has_room(&g_queue, 1000));
  do {
    receive_all();
  } while (!st_send_queue_has_room(&g_queue, 1 << 16));
  CHECK_EQ(st_send_queue_pending(&g_queue), 0);
  close_queue();
}

static void forked_child_sends_nothing(void) {
  open_queue(1 << 16);
  unsigned count = fill();
  pid_t pid = fork();
  if (pid == 0) {
    bool good = atomic_load(&g_queue.broken) && !push_run('x', 1) &&
                st_send_queue_pending(&g_queue) == 0;
    st_send_queue_drain(&g_queue);
    st_send_queue_destroy(&g_queue);
    _exit(good ? 0 : 1);
  }
  int status;
  CHECK_EQ(waitpid(pid, &status, 0), pid);
  CHECK_EQ(status, 0);
  CHECK_EQ(drain_and_receive(g_received), count * 1000);
  check_runs(g_received, count);
  close_queue();
}

enum { THREADS = 4, FRAMES = 2000 };

static void* push_frames(void* arg) {
  uint8_t args[40];
  memset(args, (int)(intptr_t)arg, sizeof args);
  for (unsigned i = 0; i < FRAMES;) {
    if (st_send_queue_invoke(&g_queue, 1, (uint32_t)(intptr_t)arg, args,
                             sizeof args, true, -1))
      i++;
    else
      sched_yield();
  }
  return NULL;
}

/* Parses all complete frames of the input.  Returns the total size of these
 * frames in bytes. */
static size_t check_frames(const uint8_t* data, size_t size, uint64_t* last_id,
                           unsigned* counts) {
  struct st_ipc_invoke invoke;
  size_t used = 0, n;
  while ((n = st_ipc_frame_get_invoke(data + used, size - used, &invoke))) {
    CHECK_EQ(invoke.request_id, ++*last_id);
    CHECK(invoke.method_id < THREADS);
    for (size_t i = 0; i < invoke.args_size; i++)
      CHECK_EQ(invoke.args[i], invoke.method_id);
    counts[invoke.method_id]++;
    used += n;
  }
  return used;
}

static void frames_of_several_threads_are_not_interleaved(void) {
  open_queue(1 << 14);
  pthread_t threads[THREADS];
  for (intptr_t i = 0; i < THREADS; i++)
    CHECK_EQ(pthread_create(&threads[i], NULL, push_frames, (void*)i), 0);
  uint64_t last_id = 0;
  unsigned counts[THREADS] = {0};
  size_t have = 0;
  while (last_id < THREADS * FRAMES) {
    have += socket_pair_receive_all(&g_pair, g_received + have, 1 << 16);
    size_t used = check_frames(g_received, have, &last_id, counts);
    memmove(g_received, g_received + used, have - used);
    have -= used;
    st_send_queue_drain(&g_queue);
  }
  for (unsigned i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    CHECK_EQ(counts[i], FRAMES);
  }
  CHECK_EQ(have, 0);
  close_queue();
}

int main(void) {
  RUN(frames_are_sent_at_once_if_the_socket_takes_them);
  RUN(unsent_bytes_stay_in_order);
  RUN(later_push_is_sent_after_unsent_bytes);
  RUN(frames_above_the_limits_are_refused_as_a_whole);
  RUN(request_ids_count_accepted_frames);
  RUN(descriptor_is_sent_with_its_frame);
  RUN(unsent_descriptors_are_closed);
  RUN(bad_descriptor_is_refused);
  RUN(broken_connection_refuses_all_frames);
  RUN(unsent_bytes_wake_the_poller);
  RUN(room_listener_is_called_after_a_refused_frame);
  RUN(push_that_makes_room_wakes_the_poller);
  RUN(file_that_got_the_sockets_number_gets_no_byte);
  RUN(replaced_queued_descriptor_is_not_closed);
  RUN(room_can_be_checked_without_a_frame);
  RUN(forked_child_sends_nothing);
  RUN(frames_of_several_threads_are_not_interleaved);
  return 0;
}
