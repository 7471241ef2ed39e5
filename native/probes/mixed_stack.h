/* Mixed stack: the Python calls of a thread at their places between its C calls.
 *
 *   C calls      Python calls         mixed
 *   sleep        leaf       (by C)    sleep
 *   loop    <─── sorter               leaf
 *   list_sort    main       (by C)    list_sort
 *   loop    <───                      sorter
 *   Py_Main                           main
 *
 * A C call of the interpreter's loop executes a Python call and those that it
 * calls directly: the outermost of them was made by C code (`by_c`).  The C
 * calls outside of the outermost Python call, which started the interpreter or
 * the thread, are left out.
 *
 * The innermost loop may not have added its Python call yet.  If all C calls are
 * known, the loops are matched from the outermost one; else from the innermost
 * one.  If that is impossible, the Python calls remain alone. */
#pragma once

#include "probes/code_map.h"
#include "probes/thread_sample.h"

/* Mixes `depth` Python calls, the innermost first, with C calls.  The result is
 * in frames[0 .. ST_STACK_MAX_DEPTH); returns its depth.  *has_native says
 * whether C calls are in it. */
int st_mixed_stack(struct st_sampled_frame* frames, int depth,
                   const struct st_c_call* calls, int count, bool is_complete,
                   bool* has_native);
