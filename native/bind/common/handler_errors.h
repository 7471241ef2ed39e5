/* Handler errors: what a signal handler of the program raises in our Python code.
 *
 * Python runs the program's signal handlers wherever its main thread is: also in
 * our own functions that native code calls (hooks, observers, the filter), whose
 * exceptions are dropped.  What a handler raises is meant for the program: the
 * KeyboardInterrupt of Ctrl-C, the SystemExit of a SIGTERM, a time limit.  If it
 * were dropped here, the program would not end.
 *
 *   signal -> [ our hook  -> [ handler raises E ] ] -> error in native code
 *          -> E waits as a pending call -> raised at the program's next
 *             instruction, with the traceback that it would have had alone
 *
 * A handler's exception is recognised by its traceback, which holds the code of
 * an installed handler, and by not being an Exception: our code raises no such.
 *
 * Used with the GIL.
 */
#pragma once

#include <stdbool.h>

/* Takes the current exception, if a handler raised it, and raises it later.
 * False: there is none, or it is another one, which stays. */
bool st_postpone_handler_error(void);
/* The same; any other exception is dropped. */
void st_drop_own_error(void);
