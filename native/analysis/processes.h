/* Processes: the threads and processes of a trace, by pid and tid.
 *
 * Each machine has pids and tids of its own; the functions below are about those
 * of the machine of st_processes_use_machine.
 *
 * utid and upid are row numbers of the tables thread and process.  The rows 0
 * are the host's idle thread and its process.  A pid or tid that is used again gets a
 * new row; lookups find the newest one that is alive.
 *
 * The kernel's events name threads without their process.  Such a thread has
 * no upid until its process is found: by a lookup with a pid, or through a
 * thread of the same process (st_threads_associate).
 *
 * Limits: a lookup considers the newest MAX_SAME_TID threads of a tid.
 */
#pragma once

#include "args.h"

enum st_name_priority {
  ST_NAME_OTHER,
  ST_NAME_FTRACE,
  ST_NAME_PROCESS_TREE,
  ST_NAME_CHROME_TYPE,
  ST_NAME_DESCRIPTOR,
  ST_NAME_BUILT_IN,
};

struct st_thread {
  int64_t tid;
  uint32_t upid;     /* ST_NO_ROW if unknown. */
  uint32_t previous; /* The thread that had the tid before, plus 1. */
  uint32_t pending;  /* The first of the thread's associations, plus 1. */
  uint8_t name_priority;
  bool has_ended;
  /* The descriptor of a track that stands for the thread, plus 1. */
  uint32_t descriptor;
};

struct st_process {
  int64_t pid;
  uint32_t descriptor;
  bool has_name, has_start, has_ended;
  struct st_arg_list args;
};

/* A fact about a thread whose process is unknown.  It is applied when the
 * process becomes known. */
struct st_association {
  uint32_t next;  /* The thread's next association, plus 1. */
  uint32_t utid;  /* A thread of the same process; ST_NO_ROW if none. */
  uint32_t child; /* A child of the thread's process; ST_NO_ROW if none. */
};

/* The pids and tids of a machine. */
struct st_pids {
  struct st_map by_tid, by_pid; /* The newest row, plus 1. */
  uint32_t idle_utid, idle_upid;
};

struct st_processes {
  struct st_storage* storage;
  ST_ARRAY(struct st_pids) machines;
  uint32_t machine; /* The number of the machine in use. */
  ST_ARRAY(struct st_thread) threads;
  ST_ARRAY(struct st_process) processes;
  ST_ARRAY(struct st_association) associations;
  ST_ARRAY(uint32_t) resolved; /* Memory of resolve(). */
  uint64_t errors;
};

void st_processes_init(struct st_processes* p, struct st_storage* s);
/* Uses the pids and tids of a machine.  A new machine gets an idle process; its
 * number must be that of the last machine plus 1. */
void st_processes_use_machine(struct st_processes* p, uint32_t machine);
/* Returns whether this is the idle thread of the machine in use. */
static inline bool st_thread_is_idle(const struct st_processes* p,
                                     uint32_t utid) {
  return utid == p->machines.data[p->machine].idle_utid;
}
/* Makes the pid and tid 0 of the machine in use those of its idle process, as in
 * traces of a system.  It is not called for JSON traces, where 0 is an id like
 * others. */
void st_processes_use_idle(struct st_processes* p);
/* Returns the upid; adds the process and its main thread if they are new. */
uint32_t st_process_get(struct st_processes* p, int64_t pid);
/* The same, but adds no main thread. */
uint32_t st_process_seen(struct st_processes* p, int64_t pid);
/* Returns the utid of a thread of a process; adds the thread if it is new. */
uint32_t st_thread_of(struct st_processes* p, int64_t tid, uint32_t upid);
/* Returns the utid of a thread of a process; adds both if they are new. */
uint32_t st_thread_get(struct st_processes* p, int64_t tid, int64_t pid);
/* Returns the utid of the newest thread of a tid that is alive; ST_NO_ROW if
 * there is none. */
uint32_t st_thread_find(const struct st_processes* p, int64_t tid);
/* The same as st_thread_find, but adds a thread without a process if there is
 * none. */
uint32_t st_thread_seen(struct st_processes* p, int64_t tid);
/* Returns false if the thread or its process has ended, or if a newer process
 * has the same pid. */
bool st_thread_is_alive(const struct st_processes* p, uint32_t utid);
/* These functions add a row for a thread or process whose id is reused. */
uint32_t st_thread_restart(struct st_processes* p, uint32_t utid);
uint32_t st_process_restart(struct st_processes* p, int64_t pid);
/* Adds a thread that has been created at ts. */
uint32_t st_thread_start(struct st_processes* p, int64_t tid, int64_t ts);
/* Adds a process that has been created at ts, and its main thread. */
uint32_t st_process_start(struct st_processes* p, int64_t pid, int64_t ts,
                          st_string name);
/* Ends the newest thread of a tid; if it is a main thread, its process, too. */
void st_thread_end(struct st_processes* p, int64_t tid, int64_t ts);
/* Records that two threads belong to the same process. */
void st_threads_associate(struct st_processes* p, uint32_t a, uint32_t b);
/* Records that the thread's process is the parent of the process `child`. */
void st_process_set_parent_thread(struct st_processes* p, uint32_t child,
                                  uint32_t utid);
void st_thread_set_name(struct st_processes* p, uint32_t utid, st_string name,
                        enum st_name_priority priority);
void st_process_set_name(struct st_processes* p, uint32_t upid, st_string name,
                         bool replaces);
void st_process_set_start(struct st_processes* p, uint32_t upid, int64_t ts);
/* Stores the arguments of processes. */
void st_processes_finish(struct st_processes* p, struct st_arg_sets* sets);
void st_processes_free(struct st_processes* p);
