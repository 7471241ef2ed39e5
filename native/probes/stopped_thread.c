#include "probes/stopped_thread.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
  /* A thread that has a CPU stops within this time, in which this one keeps its
   * own: given up, it would be back milliseconds later on a busy machine. */
  SPIN_NS = 20 * 1000,
  NAP_NS = 20 * 1000,
  STATUS_BYTES = 512,
};

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Reads the begin of /proc/TID/status; "" if the thread is gone. */
static void read_status(int tid, char* status) {
  char path[32];
  snprintf(path, sizeof path, "/proc/%d/status", tid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t size = fd < 0 ? 0 : read(fd, status, STATUS_BYTES - 1);
  if (fd >= 0)
    close(fd);
  status[size > 0 ? size : 0] = 0;
}

/* Returns the number behind a name in a status; -1 if it has none. */
static long number_of(const char* status, const char* name) {
  const char* at = strstr(status, name);
  return at ? strtol(at + strlen(name), NULL, 10) : -1;
}

/* Returns whether a thread is the main thread of a child of this process: then
 * the child's end is for those who wait for the child. */
static bool is_own_child(int tid) {
  char status[STATUS_BYTES];
  read_status(tid, status);
  return number_of(status, "\nTgid:") == tid &&
         number_of(status, "\nPPid:") == getpid();
}

/* Returns whether a thread has ended: the kernel refuses to trace a zombie. */
static bool has_ended(int tid) {
  char status[STATUS_BYTES];
  read_status(tid, status);
  return !status[0] || strstr(status, "\nState:\tZ") ||
         strstr(status, "\nState:\tX");
}

/* Takes the end of a thread, which stays a zombie until then. */
static void reap(int tid) {
  if (!is_own_child(tid))
    waitpid(tid, NULL, __WALL | WNOHANG);
}

/* Looks once whether the thread has stopped; ST_STOP_LATE: it has not. */
static enum st_stop_result look(struct st_stopped_thread* t) {
  siginfo_t info = {0};
  int error = waitid(P_PID, (id_t)t->tid, &info,
                     WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL);
  if (!error && !info.si_pid)
    return ST_STOP_LATE;
  if (error || info.si_code != CLD_TRAPPED) {
    reap(t->tid);
    t->tid = 0;
    return ST_STOP_GONE;
  }
  /* Without an event, it has stopped because of a signal, which it gets. */
  t->signal = info.si_status >> 8 ? 0 : info.si_status;
  return ST_STOP_DONE;
}

static enum st_stop_result wait_for(struct st_stopped_thread* t,
                                    uint64_t limit_ns) {
  const struct timespec nap = {.tv_nsec = NAP_NS};
  uint64_t start = t->since_ns;
  enum st_stop_result result = look(t);
  uint64_t looked = now_ns();
  while (result == ST_STOP_LATE && looked - start < limit_ns) {
    t->since_ns = looked;
    if (looked - start > SPIN_NS)
      nanosleep(&nap, NULL);
    looked = now_ns();
    result = look(t);
  }
  return result;
}

enum st_stop_result st_stopped_thread_stop(struct st_stopped_thread* t, int tid,
                                           uint64_t limit_ns) {
  if (ptrace(PTRACE_SEIZE, tid, NULL, NULL))
    return has_ended(tid) ? ST_STOP_GONE : ST_STOP_REFUSED;
  *t = (struct st_stopped_thread){.tid = tid, .since_ns = now_ns()};
  /* If this fails, the thread has ended: wait_for() says so. */
  ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
  return wait_for(t, limit_ns);
}

#if defined(__x86_64__)

static void convert(const struct user_regs_struct* from,
                    struct st_registers* to) {
  const uint64_t values[] = {
      from->rax, from->rdx, from->rcx, from->rbx, from->rsi, from->rdi,
      from->rbp, from->rsp, from->r8,  from->r9,  from->r10, from->r11,
      from->r12, from->r13, from->r14, from->r15,
  };
  for (int i = 0; i < 16; i++)
    to->values[i] = values[i];
  to->known = (UINT64_C(1) << 16) - 1;
  to->pc = from->rip;
}

#elif defined(__aarch64__)

static void convert(const struct user_regs_struct* from,
                    struct st_registers* to) {
  for (int i = 0; i < 31; i++)
    to->values[i] = from->regs[i];
  to->values[ST_UNWIND_SP] = from->sp;
  to->known = (UINT64_C(1) << 32) - 1;
  to->pc = from->pc;
}

#endif

#if defined(__x86_64__) || defined(__aarch64__)

bool st_stopped_thread_registers(const struct st_stopped_thread* t,
                                 struct st_registers* registers) {
  struct user_regs_struct content;
  struct iovec to = {&content, sizeof content};
  if (ptrace(PTRACE_GETREGSET, t->tid, (void*)NT_PRSTATUS, &to) ||
      to.iov_len != sizeof content)
    return false;
  *registers = (struct st_registers){0};
  convert(&content, registers);
  return true;
}

#else

bool st_stopped_thread_registers(const struct st_stopped_thread* t,
                                 struct st_registers* registers) {
  (void)t, (void)registers;
  return false;
}

#endif

void st_stopped_thread_release(struct st_stopped_thread* t) {
  /* If this fails, the thread has ended. */
  if (ptrace(PTRACE_DETACH, t->tid, NULL, (void*)(intptr_t)t->signal))
    reap(t->tid);
  t->tid = 0;
}

bool st_stopped_thread_poll(struct st_stopped_thread* t) {
  if (t->tid && look(t) == ST_STOP_DONE)
    st_stopped_thread_release(t);
  return !t->tid;
}
