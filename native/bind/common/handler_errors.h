/* Handler errors: what a signal handler of the program raises in our Python.
 *
 * Python runs the program's signal handlers wherever its main thread happens to
 * be: also in our own functions that native code calls (hooks, observers, the
 * filter), and whose errors have nowhere to go.  But what a handler raises is
 * meant for the program: the KeyboardInterrupt of Ctrl-C, the SystemExit of a
 * SIGTERM, a time limit.  Dropped here, it would never end.
 *
 *   signal -> [ our hook  -> [ handler raises E ] ] -> error in native code
 *          -> E waits as a pending call -> raised at the program's next
 *             instruction, with the traceback that it would have had alone
 *
 * A handler's error is told by its traceback, which holds the code of a handler
 * that is installed, and by not being an Exception: nothing of ours raises such.
 */
#ifndef STRETTO_BIND_COMMON_HANDLER_ERRORS_H_
#define STRETTO_BIND_COMMON_HANDLER_ERRORS_H_

#include <stdbool.h>

/* Takes the current error, if a handler raised it, to raise it later.  False:
 * there is none, or it is as it was. */
bool st_postpone_handler_error(void);
/* The same; any other error is dropped. */
void st_drop_own_error(void);

#endif /* STRETTO_BIND_COMMON_HANDLER_ERRORS_H_ */
