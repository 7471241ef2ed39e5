/* C calls: the calls of C functions that take long, of one thread: sleeps,
 * locks, sockets, files, databases.  A call of 1 ms or more is a slice.
 *
 * Such a call becomes known in two ways:
 *
 *   by events   The interpreter reports the begin and the end.  CALL events are
 *               on for code that contains a name such as `sleep` or `recv`
 *               (call_sites.h), and for code in which a sample has found a
 *               wait.  A site that has only short calls is switched off, until
 *               its code object is armed.
 *   by a wait   Two samples (stack_sampler.h) find that a thread has used no
 *               CPU time between them, and the kernel says that it waits in a
 *               system call.  So it waits in the instruction of its innermost
 *               frame.  The slice is the time in which it certainly waited.
 *               The wait began after the thread had used the CPU time that the
 *               first sample found, and it ended before the CPU time that was
 *               used until the sample after it: so accurate is the slice.
 *
 * The slice of a C call is written when the call has ended, or its BEGIN when it
 * has been open for long (merging_thread.h).  shown_calls.h has the slices around
 * it.
 */
#pragma once

#include "hooks/shown_calls.h"

enum {
  ST_LONG_C_CALL_NS = 1000000,
  /* A call site is switched off after this number of short calls in a row. */
  ST_SHORT_C_CALLS = 2,
};

/* Handles the begin of a call that an event reports.  Returns false if the
 * interpreter need not report the calls of this site.  The site of a starter is
 * never switched off, because each thread calls another function there. */
bool st_c_call_begins(struct st_shown_calls* s, uint64_t frame,
                      const struct st_code_record* caller, int offset,
                      PyObject* callable, uint64_t now);
void st_c_call_ends(struct st_shown_calls* s, uint64_t frame, uint64_t now);

/* Handles a wait of the innermost frame, which begins at the time `begin` or
 * up to `at_earliest` before it. */
void st_wait_begins(struct st_shown_calls* s, uint64_t frame, PyObject* code,
                    int offset, uint64_t at_earliest, uint64_t begin);
/* Handles the end of the open wait, if there is one.  The wait has ended at the
 * time `end` or up to `at_latest` after it. */
void st_wait_ends(struct st_shown_calls* s, uint64_t end, uint64_t at_latest);
/* Writes the BEGIN of the innermost call, and that of the open wait, if they have
 * been open for long.  The thread's stack was unchanged until the time `until`. */
void st_c_calls_write_open(struct st_shown_calls* s, uint64_t until);
/* Writes the calls that are still open at the end of the recording. */
void st_c_calls_end(struct st_shown_calls* s, uint64_t now);
