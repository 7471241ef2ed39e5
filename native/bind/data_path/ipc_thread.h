/* The Python type IpcThread: a native thread that polls a socket, drains a
 * SendQueue and calls back into Python when there is something to read.
 *
 * Running threads are listed in the module's state, so that they are stopped
 * before the interpreter ends.
 */
#ifndef STRETTO_BIND_DATA_PATH_IPC_THREAD_H_
#define STRETTO_BIND_DATA_PATH_IPC_THREAD_H_

#include "bind/common/python.h"

/* Adds the type or functions to the module.  -1: an exception is set. */
int st_bind_add_ipc_thread(PyObject* module);

#endif /* STRETTO_BIND_DATA_PATH_IPC_THREAD_H_ */
