/* Handler errors: exceptions that the program's signal handlers raise while our
 * Python code runs.
 *
 * Python runs signal handlers on the main thread between any two instructions.
 * The thread may then be in one of our Python functions that native code calls
 * (hooks, observers, filters), and native code drops the exceptions of these
 * functions.  But an exception of a handler is meant for the program: the
 * KeyboardInterrupt of Ctrl-C, the SystemExit of a SIGTERM, a time limit.  If
 * it were dropped, the program would not end.
 *
 *   signal -> [ our hook  -> [ handler raises E ] ] -> error in native code
 *          -> E waits as a pending call -> raised at the program's next
 *             instruction, with the handler's own traceback
 *
 * An exception counts as a handler's if its traceback contains the code of an
 * installed handler, or if it is not a subclass of Exception: our code raises
 * none of these.
 *
 * All functions need the GIL.
 */
#pragma once

#include <stdbool.h>

/* Postpones the current exception if a signal handler raised it: clears the
 * exception, and raises it again at the program's next instruction.  Returns
 * false, and leaves the exception set, if no handler raised it.  Returns false
 * also if no exception is set. */
bool st_postpone_handler_error(void);
/* Postpones the current exception if a signal handler raised it.  Clears any
 * other exception. */
void st_drop_own_error(void);
