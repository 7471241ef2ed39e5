/* Scheduling: the threads that ran on each CPU, and the states of each thread.
 *
 *   CPU 0     a a a b b a      sched_slice: a row per run of a thread
 *   thread a  Running|R|..     thread_state: a row per state of a thread
 *
 * A switch ends the run of one thread and begins the run of another; a wakeup
 * makes a sleeping thread runnable.  A switch in the compact form doesn't name
 * the thread that stops: it is the thread that the CPU's last switch started.
 *
 * The idle threads have no states.  CPUs are those of the machine of `cpus`.
 */
#pragma once

#include "cpus.h"
#include "processes.h"

/* The thread that runs on a CPU, and its row in sched_slice; ST_NO_ROW if
 * unknown. */
struct st_running {
  uint32_t slice, utid;
  int64_t pid;
  int32_t priority;
};

/* The last state of a thread, and the row of its current sleep.  Rows are
 * ST_NO_ROW if there is none. */
struct st_last_state {
  uint32_t row, blocked_row;
  st_string state;
};

struct st_sched {
  struct st_storage* storage;
  struct st_cpus* cpus; /* Of the machine in use. */
  const struct st_processes* processes;
  st_string running, runnable;
  ST_ARRAY(struct st_running) by_cpu; /* ST_MAX_CPUS per machine. */
  ST_ARRAY(struct st_last_state) by_utid;
};

enum { ST_NO_FLAGS = -1 };

void st_sched_init(struct st_sched* s, struct st_storage* storage,
                   const struct st_processes* processes);
/* Returns the entry of the CPU, which is added if it is new. */
struct st_running* st_sched_running(struct st_sched* s, uint32_t cpu);
/* Ends the CPU's row in sched_slice.  `state` is the new state of its thread; 0
 * if it is unknown. */
void st_sched_end(struct st_sched* s, uint32_t cpu, int64_t ts,
                  st_string state);
/* Begins a row in sched_slice: the thread runs on the CPU. */
void st_sched_begin(struct st_sched* s, uint32_t cpu, int64_t ts, uint32_t utid,
                    int32_t priority);
/* Sets the states of the two threads of a switch: `prev` stops in `state`, and
 * `next` runs. */
void st_sched_switch(struct st_sched* s, uint32_t cpu, int64_t ts,
                     uint32_t prev, st_string state, uint32_t next);
/* Makes a woken thread runnable.  If the thread was awake already, adds a
 * spurious wakeup.  `flags` are those of the event, or ST_NO_FLAGS. */
void st_sched_wake(struct st_sched* s, int64_t ts, uint32_t utid,
                   uint32_t waker, int32_t flags);
/* Makes a created thread runnable. */
void st_sched_new(struct st_sched* s, int64_t ts, uint32_t utid,
                  uint32_t creator);
/* The following functions are for kernels that report one thread at a time.
 * `state` is 0 if it is unknown; `cpu` is ST_NO_ROW if the thread doesn't
 * run. */
void st_sched_set_state(struct st_sched* s, uint32_t utid, int64_t ts,
                        st_string state, uint32_t cpu);
/* Replaces the thread's last state. */
void st_sched_correct_state(struct st_sched* s, uint32_t utid, st_string state);
/* Returns the thread's last state; 0 if there is none. */
st_string st_sched_last(struct st_sched* s, uint32_t utid);
/* Stores why the thread's current sleep began; `function` is the kernel
 * function that blocked it, 0 if unknown. */
void st_sched_blocked(struct st_sched* s, uint32_t utid, bool io_wait,
                      st_string function);
void st_sched_free(struct st_sched* s);
