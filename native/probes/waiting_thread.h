/* Waiting threads: how long a thread was ready to run, but had no CPU.
 *
 * The kernel's file /proc/self/task/TID/schedstat has three numbers: the time on
 * a CPU, the time of waiting for one, both in ns, and the number of times that
 * the thread got a CPU.  The second one grows when the thread gets a CPU.
 * Source: the kernel's Documentation/scheduler/sched-stats.rst.
 *
 * A kernel without CONFIG_SCHED_INFO has no such file.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Sets *ns to the second number of the file's text.  Returns false if there is
 * none. */
bool st_schedstat_waited_ns(const char* text, uint64_t* ns);
/* Sets *ns to the time for which a thread of this process has waited for a CPU.
 * Returns false if it is unknown. */
bool st_thread_waited_ns(uint64_t native_id, uint64_t* ns);
