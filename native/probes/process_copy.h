/* Process copy: runs a function in a copy of this process, which the program
 * does not notice.
 *
 *   program ──clone──> goes on: it has stopped only for the copy of the page
 *      │               tables
 *      └──────────────> copy: run(), exit
 *
 * fork() would run the handlers of pthread_atfork, and the end of the child would
 * be a SIGCHLD and a result of waitpid(-1).  A copy made by clone() with no exit
 * signal has neither: only a wait with __WALL or __WCLONE finds it, which the
 * caller does.
 *
 * The copy has one thread, blocks all signals, has no file descriptor but one,
 * leaves no core file, ends when the thread that made it ends, and is the first
 * to be killed when the machine has no memory left.
 *
 * Limits: a lock may be held by a thread that the copy does not have.  So the
 * function must not call malloc, stdio, or anything that takes a lock.
 */
#pragma once

#include <sys/types.h>

/* Calls run(self) in a copy of the process, in which only the file descriptor
 * `fd` is open.  Returns the copy's pid; -1 with errno set on failure. */
pid_t st_process_copy(void (*run)(void* self), void* self, int fd);
