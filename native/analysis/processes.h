/* Processes: the threads and processes of a trace, by pid and tid.
 *
 * utid and upid are row numbers of the tables thread and process.  The rows 0
 * are the idle thread and its process.  A pid or tid that is used again gets a
 * new row; lookups find the newest one.
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
  uint32_t upid; /* ST_NO_ROW if unknown. */
  uint8_t name_priority;
  /* The descriptor of a track that stands for the thread, plus 1. */
  uint32_t descriptor;
};

struct st_process {
  int64_t pid;
  uint32_t descriptor;
  bool has_name, has_start;
  struct st_arg_list args;
};

struct st_processes {
  struct st_storage* storage;
  ST_ARRAY(struct st_thread) threads;
  ST_ARRAY(struct st_process) processes;
  struct st_map by_tid, by_pid; /* The newest row, plus 1. */
};

void st_processes_init(struct st_processes* p, struct st_storage* s);
/* Returns the upid; adds the process and its main thread if they are new. */
uint32_t st_process_get(struct st_processes* p, int64_t pid);
/* Returns the utid of a thread of a process; adds both if they are new. */
uint32_t st_thread_get(struct st_processes* p, int64_t tid, int64_t pid);
/* These functions add a row for a thread or process whose id is reused. */
uint32_t st_thread_restart(struct st_processes* p, uint32_t utid);
uint32_t st_process_restart(struct st_processes* p, int64_t pid);
void st_thread_set_name(struct st_processes* p, uint32_t utid, st_string name,
                        enum st_name_priority priority);
void st_process_set_name(struct st_processes* p, uint32_t upid, st_string name,
                         bool replaces);
void st_process_set_start(struct st_processes* p, uint32_t upid, int64_t ts);
/* Stores the arguments of processes. */
void st_processes_finish(struct st_processes* p, struct st_arg_sets* sets);
void st_processes_free(struct st_processes* p);
