/* The files of the data source linux.sys_stats: each function converts the text
 * of a file in /proc to fields of the message SysStats.
 *
 * Lines with an unknown format are ignored.  A number beyond the range of its
 * field becomes the largest value of the field.
 *
 * Source: proc(5), and the kernel's Documentation/filesystems/proc.rst,
 * admin-guide/iostats.rst and accounting/psi.rst.
 */
#pragma once

#include "core/message.h"
#include "probes/text.h"

/* A line of /proc/meminfo or /proc/vmstat: the kernel's name of the counter,
 * and Perfetto's number of it; 0 if the counter is not written. */
struct st_counter_name {
  const char* name;
  size_t size;
  uint32_t key;
};

/* The part of a session's config that concerns one file. */
struct st_sys_choice {
  /* The counters, in the order of the file's lines.  The search for a line's
   * counter begins after the counter of the previous line. */
  const struct st_counter_name* counters;
  size_t counter_count;
  /* The chosen parts of /proc/stat: a set of bits 1 <<
   * SysStatsConfig.StatCounters; 0 chooses all. */
  uint32_t parts;
  /* The PsiResource of the `some` line of a file in /proc/pressure.  The `full`
   * line has the next number. */
  uint32_t resource;
  uint64_t ns_per_tick;
};

typedef void st_sys_file(struct st_text text,
                         const struct st_sys_choice* choice,
                         struct st_message* stats);

st_sys_file st_meminfo, st_vmstat, st_stat, st_buddyinfo, st_diskstats,
    st_pressure, st_slabinfo, st_cpu_frequency;

/* A file and its converter, by the name of the group of counters. */
struct st_sys_group {
  const char* name;
  st_sys_file* convert;
  /* Whether the kernel writes the file as one record (held_file.h). */
  bool is_record;
};

/* Returns the file of a group, such as "meminfo"; NULL if there is none. */
const struct st_sys_group* st_sys_group_of(const char* name);
