/* Message bytes: a message that native code writes, as a Python bytes object.
 *
 *   struct message_bytes m = {0};
 *   message_bytes_begin(&m);            with or without the GIL
 *   ... append to &m.root ...
 *   PyObject* bytes = message_bytes_take(&m);
 *   message_bytes_free(&m);
 *
 * The memory is used again for the next message.
 */
#pragma once

#include "bind/common/python.h"
#include "core/message.h"

struct message_bytes {
  struct st_heap_stream heap;
  struct st_stream_writer stream;
  struct st_message root;
};

void message_bytes_begin(struct message_bytes* m);
/* Ends the message.  Returns NULL with an exception set on failure. */
PyObject* message_bytes_take(struct message_bytes* m);
/* Ends the message, and returns its bytes, which stay until the next one begins.
 * Returns NULL with an exception set on failure. */
const uint8_t* message_bytes_view(struct message_bytes* m, size_t* size);
void message_bytes_free(struct message_bytes* m);
