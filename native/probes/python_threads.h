/* Python threads: lists the threads of another process that have a Python
 * thread state.
 *
 * The list is read from the interpreters' linked lists of thread states, which
 * may change during the read: a thread that starts or ends may be missed until
 * the list is read again.
 */
#pragma once

#include "probes/python_target.h"
#include "probes/thread_sample.h"

enum { ST_PYTHON_MAX_THREADS = 4096 };

struct st_python_thread {
  struct st_thread_place place;
  /* The file /proc/PID/task/TID/syscall; -1 if not open. */
  int syscall_fd;
  /* Whether the thread ran when it was last looked at; whether it had ended. */
  bool ran, has_ended;
};

struct st_python_threads {
  struct st_python_thread* all; /* Room for ST_PYTHON_MAX_THREADS. */
  int count;
  /* Whether the files are opened, which st_python_thread_runs() needs. */
  bool opens_files;
  /* Whether the process has threads without a Python thread state. */
  bool has_others;
  /* Whether threads have started or ended before the last read of the list. */
  bool has_changed;
};

/* Reads the list.  The data of unchanged threads is kept.  Returns false if no
 * interpreter can be read: the process has ended, or runs another program. */
bool st_python_threads_list(struct st_python_threads* threads,
                            const struct st_python_target* target);
void st_python_threads_close(struct st_python_threads* threads);

/* Returns whether a thread runs, or waits for a CPU. */
bool st_python_thread_runs(struct st_python_thread* thread);
