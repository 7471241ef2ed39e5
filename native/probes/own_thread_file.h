/* Reads the kernel's files of a thread of this process, such as
 * /proc/self/task/TID/schedstat.
 *
 * Each folder of a thread that was opened is one more that the process's parent
 * has to remove from the kernel's cache.  The main thread's files are also in
 * the folder of the process, and are read there.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies the begin of a file, and a zero byte, to `text` of `size` bytes.
 * Returns false if there is no such file. */
bool st_read_own_thread_file(uint64_t native_id, const char* name, char* text,
                             size_t size);
