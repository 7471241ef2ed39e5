/* Blocked threads: tells whether a thread waits in a system call.
 *
 * A thread that uses no CPU time may also wait for a CPU, or for a lock that is
 * not of interest, such as the GIL.  The kernel's file
 * /proc/self/task/TID/syscall tells these apart:
 *
 *   running                    the thread runs, or waits for a CPU
 *   202 0x7f0000001000 ...     it waits in this system call, with these
 *                              arguments
 *
 * Where the kernel does not offer the file, no thread counts as blocked.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A range of addresses: [start, start + size). */
struct st_address_range {
  uint64_t start, size;
};

/* Returns whether a thread of this process waits in a system call.  A thread
 * that waits for a futex in the range `except` does not count. */
bool st_thread_is_blocked(uint64_t native_id, struct st_address_range except);

/* Returns whether the content of a file `syscall` says so. */
bool st_syscall_text_is_blocked(const char* text,
                                struct st_address_range except);
