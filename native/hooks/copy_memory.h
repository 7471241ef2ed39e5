/* Copy memory: the memory of Python objects in a copy of the process
 * (probes/process_copy.h), where malloc must not be called.
 *
 *   | size | block | size | block | free ...     pages of the kernel
 *
 * Blocks are given out one after the other.  Only the last one can be freed: the
 * copy makes few objects, most of which it drops at once.  Blocks of the program
 * are never freed.
 */
#pragma once

/* Replaces Python's allocators. */
void st_copy_memory_install(void);
