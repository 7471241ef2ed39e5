/* Ftrace statistics: the file `stats` of a CPU's ring buffer, as a message
 * FtraceCpuStats.  Each of its lines is "name: value"; lines with other names
 * are ignored.
 */
#pragma once

#include "core/message.h"
#include "probes/text.h"

/* Appends the statistics of a CPU to a message FtraceStats. */
void st_write_ftrace_cpu_stats(struct st_text text, uint32_t cpu,
                               struct st_message* stats);
