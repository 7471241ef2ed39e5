/* Thread renames: the last name of each thread that was renamed during a
 * session.
 *
 * The descriptor of a thread has the name of the time at which it was written,
 * for most threads that of the first event.  A thread may be renamed later, in
 * Python (`threading.current_thread().name = ...`, often by the initializer of
 * a pool) or in the kernel (prctl, pthread_setname_np).  When a session ends,
 * it writes the descriptors of these threads once more:
 *
 *   first event     watch: a guard in the dict of the thread's state in Python
 *   thread ends     the guard goes, on that thread and with the GIL; if the
 *                   name has changed, its descriptor is kept
 *   session ends    the Python function renamed_threads(slot) returns what was
 *                   kept, and the descriptors of running threads that were
 *                   renamed
 *
 * The name in Python counts, if it has changed.  Else the kernel's name counts,
 * if it has changed, is not the beginning of the name in Python (CPython 3.14
 * and later copy it), and is not that of the main thread, which names the
 * process.
 *
 * Limits: MAX_KEPT descriptors of ended threads are kept.  A program that is
 * killed does not write them.
 *
 * The GIL is needed.
 */
#pragma once

/* Forgets the ended threads of the parent, in the child of a fork. */
void thread_renames_forget(void);
