/* The Python type SendQueue: every byte that leaves over one connection.
 *
 * The core queue has a leaf mutex; its functions never block and need no GIL.
 */
#ifndef STRETTO_BIND_DATA_PATH_SEND_QUEUE_H_
#define STRETTO_BIND_DATA_PATH_SEND_QUEUE_H_

#include "bind/common/python.h"
#include "core/send_queue.h"

/* The core struct behind a SendQueue; NULL with TypeError for other types. */
struct st_send_queue* st_bind_send_queue(PyObject* object);

/* Adds the type or functions to the module.  -1: an exception is set. */
int st_bind_add_send_queue(PyObject* module);

#endif /* STRETTO_BIND_DATA_PATH_SEND_QUEUE_H_ */
