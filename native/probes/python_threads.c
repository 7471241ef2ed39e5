#include "probes/python_threads.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probes/blocked_thread.h"

static int open_syscall_file(int pid, uint64_t tid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/task/%llu/syscall", pid,
           (unsigned long long)tid);
  return open(path, O_RDONLY | O_CLOEXEC);
}

bool st_python_thread_runs(struct st_python_thread* t) {
  char text[256];
  ssize_t size =
      t->syscall_fd < 0 ? 0 : pread(t->syscall_fd, text, sizeof text - 1, 0);
  t->has_ended = size < 0 && errno == ESRCH;
  if (size <= 0)
    return false;
  if (text[0] == 'r') /* "running" */
    return true;
  text[size] = 0;
  return !st_syscall_text_is_blocked(text, (struct st_address_range){0});
}

static void close_from(struct st_python_threads* threads, int index) {
  for (int i = index; i < threads->count; i++)
    if (threads->all[i].syscall_fd >= 0)
      close(threads->all[i].syscall_fd);
  if (index < threads->count)
    threads->count = index;
}

void st_python_threads_close(struct st_python_threads* threads) {
  close_from(threads, 0);
}

/* Stores a thread at `index` of the list.  If the list had another thread
 * there, the data of this and of all later threads is dropped: also if the new
 * thread has the memory of one that has ended, whose native id a sample has
 * corrected, but not its file. */
static void set(struct st_python_threads* threads, int index, int pid,
                uint64_t state, uint64_t native_id) {
  struct st_python_thread* t = &threads->all[index];
  if (index < threads->count && !t->has_ended && t->place.state == state &&
      t->place.native_id == native_id)
    return;
  threads->has_changed = true;
  close_from(threads, index);
  *t = (struct st_python_thread){
      .place = {.state = state, .native_id = native_id},
      .syscall_fd =
          threads->opens_files ? open_syscall_file(pid, native_id) : -1};
  threads->count = index + 1;
}

/* Adds the threads of one interpreter to the list after the first `count`.
 * Returns the new count, or -1 if the interpreter cannot be read. */
static int list_interpreter(struct st_python_threads* threads,
                            const struct st_python_target* target,
                            uint64_t head, int count) {
  const struct st_stack_layout* layout = &target->layout.stack;
  uint64_t state, native_id, next;
  if (!st_process_read(target->pid, head, &state, sizeof state))
    return -1;
  for (; state && count < ST_PYTHON_MAX_THREADS; state = next, count++) {
    if (!st_process_read(target->pid, state + layout->thread_native_id,
                         &native_id, sizeof native_id) ||
        !st_process_read(target->pid, state + layout->thread_next, &next,
                         sizeof next))
      break;
    set(threads, count, target->pid, state, native_id);
  }
  return count;
}

static bool has_others(int pid, int known) {
  char path[32];
  struct stat status;
  snprintf(path, sizeof path, "/proc/%d/task", pid);
  return stat(path, &status) || status.st_nlink != (nlink_t)known + 2;
}

bool st_python_threads_list(struct st_python_threads* threads,
                            const struct st_python_target* target) {
  int count = 0;
  bool is_readable = false;
  threads->has_changed = false;
  for (int i = 0; i < target->head_count; i++) {
    int listed = list_interpreter(threads, target, target->heads[i], count);
    is_readable |= listed >= 0;
    count = listed >= 0 ? listed : count;
  }
  threads->has_changed |= count < threads->count;
  close_from(threads, count);
  threads->has_others = has_others(target->pid, count);
  return is_readable;
}
