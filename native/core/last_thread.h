/* The end of a forked child whose first thread is not the program's main one.
 *
 * A child of a fork has one thread, a copy of the thread that forked.  If that
 * was the main thread, its return ends the child.  If not, the thread only
 * ends, and the C library ends the process, with exit(0), once there is no
 * other thread.  Our own threads would keep such a process alive for ever.
 *
 *   child     st_last_thread_watch()   by the thread that has forked
 *   its end   if only our threads are left: exit(0).  Else a thread waits for
 *             the ends of the program's other threads, and then calls exit(0).
 *
 * Our threads are known by their names, which begin with "stretto-".
 */
#pragma once

/* Watches for the end of the calling thread, also in its own forked children.
 * st_last_thread_prepare() has to be called before, once or more. */
void st_last_thread_prepare(void);
void st_last_thread_watch(void);
