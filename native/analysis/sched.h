/* Scheduling: what each CPU ran, and the states of each thread.
 *
 *   CPU 0     a a a b b a      sched_slice: a row per run of a thread
 *   thread a  Running|R|..     thread_state: a row per state of a thread
 *
 * A switch ends the run of one thread and begins that of another; a wakeup
 * makes a sleeping thread runnable.  A switch in the compact form doesn't say
 * which thread it ends: it is the one that the CPU's last switch began.
 *
 * The idle thread has no states.
 */
#pragma once

#include "cpus.h"

/* What a CPU runs; ST_NO_ROW for what is unknown. */
struct st_running {
  uint32_t slice, utid;
  int64_t pid;
};

/* The last state of a thread; rows are ST_NO_ROW if it has none. */
struct st_last_state {
  uint32_t row, blocked_row;
  st_string state;
};

struct st_sched {
  struct st_storage* storage;
  struct st_cpus* cpus;
  st_string running, runnable;
  ST_ARRAY(struct st_running) by_cpu;
  ST_ARRAY(struct st_last_state) by_utid;
};

enum { ST_NO_FLAGS = -1 };

void st_sched_init(struct st_sched* s, struct st_storage* storage,
                   struct st_cpus* cpus);
/* Returns what the CPU runs. */
struct st_running* st_sched_running(struct st_sched* s, uint32_t cpu);
/* Ends the CPU's run, in the state of the thread; 0 if it is unknown. */
void st_sched_end(struct st_sched* s, uint32_t cpu, int64_t ts,
                  st_string state);
void st_sched_begin(struct st_sched* s, uint32_t cpu, int64_t ts, uint32_t utid,
                    int32_t priority);
/* Sets the states of the threads that a switch ends and begins. */
void st_sched_switch(struct st_sched* s, uint32_t cpu, int64_t ts,
                     uint32_t prev, st_string state, uint32_t next);
/* A thread is woken up.  `flags` are those of the event, or ST_NO_FLAGS. */
void st_sched_wake(struct st_sched* s, int64_t ts, uint32_t utid,
                   uint32_t waker, int32_t flags);
/* A thread has been created. */
void st_sched_new(struct st_sched* s, int64_t ts, uint32_t utid,
                  uint32_t creator);
/* Says why the thread's last sleep began; `function` is 0 if it is unknown. */
void st_sched_blocked(struct st_sched* s, uint32_t utid, bool io_wait,
                      st_string function);
void st_sched_free(struct st_sched* s);
