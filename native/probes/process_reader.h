/* Process reader: reads all processes of a machine from /proc.
 *
 *   st_process_reader_list(r)     lists the processes that run now
 *   st_write_process_tree(...)    describes processes and threads
 *   st_write_process_values(...)  writes the values that have changed
 *
 * The reader has an entry for each process of the last list, sorted by pid,
 * with the values that were written last.  The entry of a process that has
 * ended is removed, because another process may get its id.
 *
 * Kernel threads are most processes of many machines.  They are described by
 * `stat`, which the kernel writes in half the time of `status`, and by what all
 * of them share with their parent, kthreadd.  Its other children, programs that
 * the kernel has started, don't have the flag of a kernel thread in `stat`.
 *
 *   2/status                its user; whether the kernel tells kernel threads
 *   2/task/2/children       the ids of those whose `stat` is read first
 *   PID/stat                flag, name and parent
 */
#pragma once

#include <dirent.h>

#include "probes/held_file.h"
#include "probes/process_files.h"

struct st_process_options {
  bool thread_names;
  /* Whether a main thread has a message of its own. */
  bool main_threads;
  /* Which data are read: start times, CPU times, smaps_rollup, dmabuf_rss. */
  bool ages, runtimes, smaps, dmabuf;
  uint64_t ns_per_tick;
};

struct st_process_entry {
  int32_t pid;
  bool is_described;
  /* Whether the process is a child of kthreadd, during a scan. */
  bool has_kernel_parent;
  /* Whether the process is a kernel thread or a zombie.  Its status is not read
   * again. */
  bool has_no_memory;
  /* Whether the last st_write_process_values() found values. */
  bool has_values;
  struct st_process_values written;
};

struct st_process_reader {
  struct st_process_options options;
  DIR* proc;
  struct st_process_entry* entries;
  size_t count;
  /* What kernel threads share with kthreadd: the user, and whether `status` has
   * a line "Kthread". */
  uint64_t kernel_uid;
  bool has_kthread;
  struct st_read_buffer status, other;
};

/* Opens the folder `proc`, which has the form of /proc.  If that fails, the
 * machine has no processes. */
void st_process_reader_init(struct st_process_reader* r, const char* proc,
                            const struct st_process_options* options);
void st_process_reader_free(struct st_process_reader* r);

/* Lists the processes.  Returns false when out of memory. */
bool st_process_reader_list(struct st_process_reader* r);

/* Which processes st_write_process_tree() describes: all, with their threads;
 * or those that have values and were not described yet. */
enum st_process_choice { ST_ALL_PROCESSES, ST_NEW_PROCESSES };

/* Writes fields of a ProcessTree. */
void st_write_process_tree(struct st_process_reader* r,
                           enum st_process_choice choice,
                           struct st_message* tree);
/* Writes fields of ProcessStats: the values that differ from those written
 * last. */
void st_write_process_values(struct st_process_reader* r,
                             struct st_message* stats);

/* Forgets which values were written, so that all are written next. */
void st_process_reader_forget_values(struct st_process_reader* r);
/* Removes all entries, so that all processes are described again, too. */
void st_process_reader_forget(struct st_process_reader* r);
