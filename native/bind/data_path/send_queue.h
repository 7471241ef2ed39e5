/* The Python type SendQueue: every byte that leaves over one connection.
 *
 * The core queue has a leaf mutex; its functions never block and need no GIL.
 */
#pragma once

#include "bind/common/python.h"
#include "core/send_queue.h"

/* The core struct behind a SendQueue; NULL with TypeError for other types. */
struct st_send_queue* st_bind_send_queue(PyObject* object);
