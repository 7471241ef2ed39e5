/* Python threads: the threads of another process that Python knows.
 *
 * The list is read from the interpreters' linked lists of thread states, which
 * change meanwhile: a thread that starts or ends may be missed until the list
 * is read again.
 */
#pragma once

#include "probes/python_target.h"
#include "probes/thread_sample.h"

enum { ST_PYTHON_MAX_THREADS = 4096 };

struct st_python_thread {
  struct st_thread_place place;
  /* The kernel's file that tells whether the thread runs; -1 if not open. */
  int syscall_fd;
};

struct st_python_threads {
  struct st_python_thread* all; /* Room for ST_PYTHON_MAX_THREADS. */
  int count;
  /* Whether st_python_thread_runs will be asked. */
  bool opens_files;
  /* Whether the process has threads that Python does not know. */
  bool has_others;
};

/* Reads the list; keeps what is known of a thread.  Returns false if no
 * interpreter can be read: the process has ended, or runs another program. */
bool st_python_threads_list(struct st_python_threads* threads,
                            const struct st_python_target* target);
void st_python_threads_close(struct st_python_threads* threads);

/* Returns whether a thread runs, or waits for a CPU. */
bool st_python_thread_runs(const struct st_python_thread* thread);
