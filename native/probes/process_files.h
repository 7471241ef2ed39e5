/* Process files: converts the texts in /proc/PID to values, and to messages
 * ProcessTree.Process and ProcessTree.Thread, for the data source
 * linux.process_stats.
 *
 * Lines with an unknown format are ignored.
 * Source: proc(5).
 */
#pragma once

#include "core/message.h"
#include "probes/text.h"

/* The values of a process, in the order of st_process_fields. */
enum {
  ST_VM_SIZE,
  ST_SMAPS_FIRST = 8,
  ST_OOM_SCORE_ADJ = 14,
  ST_RUNTIME_USER,
  ST_RUNTIME_KERNEL,
  ST_DMABUF_RSS,
  ST_PROCESS_VALUES
};

/* The field numbers of the values in ProcessStats.Process. */
extern const uint8_t st_process_fields[ST_PROCESS_VALUES];

struct st_process_values {
  uint64_t value[ST_PROCESS_VALUES];
  /* The values that the process has: a set of bits 1 << index. */
  uint32_t present;
};

static inline void st_process_set(struct st_process_values* values,
                                  unsigned index, uint64_t value) {
  values->value[index] = value;
  values->present |= 1u << index;
}

/* The lines of /proc/PID/status, which describe a process or a thread. */
struct st_status {
  struct st_text name;
  /* The ids in the inner pid namespaces; most processes have none. */
  struct st_text inner_ids;
  uint64_t tgid, ppid, uid, threads, kthread;
  /* Whether `kthread` is known.  Kernels before 6.4 have no line "Kthread". */
  bool has_kthread;
};

/* Reads `status` up to its line "Threads", after which all kernels write signals
 * and rights.  Adds the sizes of the memory to `values` unless it is NULL. */
void st_parse_status(struct st_text text, struct st_status* status,
                     struct st_process_values* values);
/* Adds the sizes in `smaps_rollup` to the values. */
void st_parse_smaps(struct st_text text, struct st_process_values* values);

/* The words of /proc/PID/stat.  Times are in clock ticks; `start` is the time
 * since boot. */
struct st_process_stat {
  struct st_text name;
  uint64_t ppid, flags, user, kernel, start;
};
/* PF_KTHREAD of <linux/sched.h>, in `flags`. */
enum { ST_IS_KERNEL_THREAD = 0x200000 };
/* Reads `stat`.  The name in it, in parentheses, may contain blanks and
 * parentheses. Returns false if it is damaged. */
bool st_parse_stat(struct st_text text, struct st_process_stat* stat);

/* Reads a file that contains only a number.  Returns false if it contains
 * anything else. */
bool st_parse_number(struct st_text text, int64_t* value);

/* Writes the fields of a ProcessTree.Process, except the start time.  If the
 * command line is empty, as for kernel threads and zombies, the name is written
 * instead. */
void st_write_process(const struct st_status* status, struct st_text cmdline,
                      struct st_message* process);
/* Writes the fields of a ProcessTree.Thread; its name only if `named`. */
void st_write_thread(const struct st_status* status, int32_t tid, bool named,
                     struct st_message* thread);
