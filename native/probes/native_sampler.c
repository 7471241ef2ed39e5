#include "probes/native_sampler.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "probes/mixed_stack.h"
#include "probes/stopped_thread.h"

enum {
  /* A thread that has not stopped after this time is waited for later. */
  STOP_LIMIT_NS = 2 * 1000 * 1000,
  /* The largest pauses that follow each other, after a time without one. */
  MAX_CREDIT_NS = 10 * 1000 * 1000,
  SYSCALL_TEXT = 256,
#if defined(__x86_64__)
  RED_ZONE = 128,
#else
  RED_ZONE = 0,
#endif
};

struct st_native_sampler {
  int pid;
  bool may_stop;
  struct st_stopped_thread stopped;
  int64_t credit_ns;
  uint64_t credited_ns;
  char waits[SYSCALL_TEXT]; /* The text of a thread that waits, else "". */
  struct st_registers registers;
  uint64_t stack_start;
  size_t stack_size;
  uint8_t stack[ST_NATIVE_STACK_BYTES];
  struct st_c_call calls[ST_NATIVE_MAX_DEPTH];
  struct st_code_map* map;
  struct st_native_stats stats;
};

struct st_native_sampler* st_native_sampler_create(int pid, bool may_stop) {
  struct st_native_sampler* n = calloc(1, sizeof *n);
  if (!n)
    return NULL;
  *n = (struct st_native_sampler){.pid = pid,
                                  .may_stop = may_stop,
                                  .credit_ns = MAX_CREDIT_NS,
                                  .map = st_code_map_create()};
  if (n->map)
    return n;
  free(n);
  return NULL;
}

void st_native_sampler_destroy(struct st_native_sampler* n) {
  st_code_map_destroy(n->map);
  free(n);
}

struct st_code_map* st_native_sampler_map(struct st_native_sampler* n) {
  return n->map;
}

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* --- Threads that wait ---------------------------------------------------- */

/* Reads the text of the kernel's file; "" if it can't be read. */
static void read_text(const struct st_python_thread* thread, char* text) {
  ssize_t size = thread->syscall_fd < 0
                     ? 0
                     : pread(thread->syscall_fd, text, SYSCALL_TEXT - 1, 0);
  text[size > 0 ? size : 0] = 0;
}

/* Takes sp and pc, the last two numbers of a text.  Returns false if the text
 * has none: the thread runs. */
static bool take_waiting(const char* text, struct st_registers* r) {
  const char* pc = strrchr(text, ' ');
  if (text[0] == 'r' || !pc)
    return false;
  const char* sp = pc;
  while (sp > text && sp[-1] != ' ')
    sp--;
  *r = (struct st_registers){.pc = strtoull(pc, NULL, 16),
                             .known = UINT64_C(1) << ST_UNWIND_SP};
  r->values[ST_UNWIND_SP] = strtoull(sp, NULL, 16);
  return true;
}

/* --- Threads that run ----------------------------------------------------- */

/* Returns whether a pause is within the limit. */
static bool has_credit(struct st_native_sampler* n) {
  uint64_t now = now_ns();
  if (n->credited_ns)
    n->credit_ns += (int64_t)((now - n->credited_ns) * ST_PAUSE_PERCENT / 100);
  if (n->credit_ns > MAX_CREDIT_NS)
    n->credit_ns = MAX_CREDIT_NS;
  n->credited_ns = now;
  return n->credit_ns > 0;
}

static void release(struct st_native_sampler* n) {
  st_stopped_thread_release(&n->stopped);
  uint64_t paused = now_ns() - n->stopped.since_ns;
  n->credit_ns -= (int64_t)paused;
  n->stats.paused_ns += paused;
}

static bool stop(struct st_native_sampler* n, uint64_t native_id) {
  if (!n->may_stop || !st_native_sampler_idle(n) || !has_credit(n))
    return false;
  enum st_stop_result result =
      st_stopped_thread_stop(&n->stopped, (int)native_id, STOP_LIMIT_NS);
  n->stats.refused += result == ST_STOP_REFUSED;
  if (result != ST_STOP_DONE)
    return false;
  if (st_stopped_thread_registers(&n->stopped, &n->registers))
    return true;
  release(n);
  return false;
}

void st_native_sampler_enter(struct st_native_sampler* n) {
  n->stopped.tid = 0;
}

bool st_native_sampler_idle(struct st_native_sampler* n) {
  return st_stopped_thread_poll(&n->stopped);
}

/* --- Samples -------------------------------------------------------------- */

/* Copies the stack, with what a leaf function may have below the stack pointer:
 * to its end, if that is near. */
static void copy_stack(struct st_native_sampler* n) {
  n->stack_start = n->registers.values[ST_UNWIND_SP] - RED_ZONE;
  struct iovec local = {n->stack, sizeof n->stack};
  struct iovec remote = {(void*)(uintptr_t)n->stack_start, sizeof n->stack};
  ssize_t size = process_vm_readv(n->pid, &local, 1, &remote, 1, 0);
  n->stack_size = size > 0 ? (size_t)size : 0;
}

bool st_native_sampler_begin(struct st_native_sampler* n,
                             const struct st_python_thread* thread) {
  if (!st_code_map_has_loop(n->map))
    return false;
  read_text(thread, n->waits);
  if (!take_waiting(n->waits, &n->registers)) {
    n->waits[0] = 0;
    if (!stop(n, thread->place.native_id)) {
      n->stats.unstopped++;
      return false;
    }
  }
  copy_stack(n);
  return true;
}

bool st_native_sampler_end(struct st_native_sampler* n,
                           const struct st_python_thread* thread) {
  char text[SYSCALL_TEXT];
  if (!n->waits[0]) {
    release(n);
    return true;
  }
  read_text(thread, text);
  return !strcmp(text, n->waits);
}

static bool read_stack(void* self, uint64_t address, void* to, size_t size) {
  const struct st_native_sampler* n = self;
  uint64_t at = address - n->stack_start;
  if (at > n->stack_size || size > n->stack_size - at)
    return false;
  memcpy(to, n->stack + at, size);
  return true;
}

int st_native_sampler_mix(struct st_native_sampler* n,
                          struct st_sampled_frame* frames, int depth) {
  struct st_process_memory process = {.pid = n->pid};
  struct st_memory tables = st_process_source(&process);
  struct st_memory stack = {.read = read_stack, .self = n};
  bool is_complete, has_native;
  int count = st_code_map_walk(n->map, &tables, &stack, &n->registers, n->calls,
                               ST_NATIVE_MAX_DEPTH, &is_complete);
  depth =
      st_mixed_stack(frames, depth, n->calls, count, is_complete, &has_native);
  n->stats.native += has_native;
  return depth;
}

struct st_native_stats st_native_sampler_stats(
    const struct st_native_sampler* n) {
  return n->stats;
}
