/* System calls that wait: pairs the kernel's events raw_syscalls/sys_enter and
 * sys_exit of each thread.
 *
 *   st_syscall_waits_add_page(w, page, size)   pages of all CPUs, in any order
 *   st_syscall_waits_sort(w, until)            events before `until` are complete
 *   while (st_syscall_waits_next(w, &call)) ...
 *   while (st_syscall_waits_open(w, now, &call)) ...
 *   while (st_syscall_waits_rest(w, &call)) ...    at the end
 *
 * A thread may enter a call on one CPU and leave it on another, so the events of
 * all CPUs are sorted by time.  Those after `until` stay for the next time.
 *
 * Reported are, in the order in which they end:
 *
 *   ST_SYSCALL_WAIT   calls that last `min_ns` or longer
 *   ST_SYSCALL_TOLD   all calls
 *
 * Also reported is each new thread: while it lives, its process can be found.
 *
 * poll() and select() have their descriptors in the program's memory, which is
 * not read.  But a thread that has waited for a descriptor uses it next.  So
 * such a call is reported with the descriptor of the thread's next call, if that
 * call uses one (poll() of one descriptor) or reads from one (all others).
 *
 * Memory is bounded: events and threads beyond the limits are dropped, and
 * counted.  Where events are missing, all calls that are open are forgotten.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  ST_SYSCALL_WAIT = 1,
  ST_SYSCALL_TOLD = 2,
  ST_SYSCALL_POLL = 4,
  ST_SYSCALL_USES_FD = 8, /* The first argument is a descriptor, */
  ST_SYSCALL_READS = 16,  /* from which the call reads. */

  ST_SYSCALL_NEW_THREAD = UINT16_MAX, /* Instead of a number of a call. */
  ST_SYSCALL_MAX_EVENTS = 1 << 18,
  ST_SYSCALL_MAX_THREADS = 1 << 13,
  /* A poll() and the use of its descriptor are not further apart. */
  ST_SYSCALL_USE_NS = 1000 * 1000,
};

struct st_syscall {
  uint64_t begin;
  uint64_t end; /* 0: the call has not ended. */
  int64_t result;
  uint64_t arguments[2];
  int32_t tid;
  uint32_t number;
  int32_t used_fd; /* The descriptor that the thread used next; -1: unknown. */
};

struct st_syscall_event;
struct st_syscall_thread;

struct st_syscall_waits {
  /* What is reported about each call, by its number. */
  const uint8_t* kinds;
  size_t kind_count;
  uint16_t enter_id, exit_id; /* The ids of the two events. */
  uint64_t min_ns;
  int32_t hidden_tid; /* A thread that is left out: the reader itself. */

  struct st_syscall_event* events;
  size_t event_count, event_capacity;
  size_t next_event, sorted_count;
  struct st_syscall_thread* threads;
  uint16_t* slots; /* A hash table by tid: one more than the thread's index. */
  size_t thread_count, next_open, next_rest;

  uint64_t lost_events;     /* How often the kernel or a limit lost some. */
  uint64_t dropped_threads; /* Calls of threads beyond the limit. */
};

/* `w` has the members up to hidden_tid, and zeros.  Returns false when out of
 * memory. */
bool st_syscall_waits_init(struct st_syscall_waits* w);
void st_syscall_waits_free(struct st_syscall_waits* w);

void st_syscall_waits_add_page(struct st_syscall_waits* w, const uint8_t* page,
                               size_t size);
void st_syscall_waits_sort(struct st_syscall_waits* w, uint64_t until);
/* Stores the next call that is reported.  Returns false if there is none. */
bool st_syscall_waits_next(struct st_syscall_waits* w, struct st_syscall* call);
/* Stores the next of the calls that have not ended, but last `min_ns` already:
 * each once.  What they wait for can be found out now. */
bool st_syscall_waits_open(struct st_syscall_waits* w, uint64_t now,
                           struct st_syscall* call);
/* Stores the next of the calls that are kept back, or have not ended. */
bool st_syscall_waits_rest(struct st_syscall_waits* w, struct st_syscall* call);
