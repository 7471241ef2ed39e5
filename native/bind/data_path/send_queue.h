/* The Python type SendQueue: sends all bytes of one connection.
 *
 * The core queue has a leaf mutex; its functions never block and need no GIL.
 */
#pragma once

#include "bind/common/python.h"
#include "core/send_queue.h"

/* Returns the core struct of a SendQueue.  For other objects returns NULL with
 * TypeError set. */
struct st_send_queue* st_bind_send_queue(PyObject* object);
