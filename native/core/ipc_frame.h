/* IPC frames: the one kind that is sent and received for every chunk.
 *
 *   0          4
 *   | length   | IPCFrame { 2 request_id,
 *   | u32 LE   |            5 msg_invoke_method { 1 service_id, 2 method_id,
 *   |          |                                  3 args_proto, 4 drop_reply } }
 *
 * Everything else about frames (binding, replies, errors) is Python's
 * business: stretto.ipc.  Parsing trusts nothing; what isn't plainly a whole
 * InvokeMethod frame is left to the general parser.
 *
 * Source: docs/formats/ipc.md, "Frames".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  ST_IPC_HEADER_SIZE = 4,
  ST_IPC_MAX_FRAME = 131072, /* including the header */
  /* Bytes of an InvokeMethod frame around its arguments, at most. */
  ST_IPC_INVOKE_OVERHEAD = 48,
};

struct st_ipc_invoke {
  uint64_t request_id;
  uint32_t service_id;
  uint32_t method_id;
  const uint8_t* args;
  size_t args_size;
  bool drop_reply;
};

/* Writes a whole frame to `out`, which has room for args_size +
 * ST_IPC_INVOKE_OVERHEAD bytes.  Returns its size. */
size_t st_ipc_frame_put_invoke(uint8_t* out,
                               const struct st_ipc_invoke* invoke);

/* Parses the frame at the front of data.  Returns its size, header included,
 * if it is a whole InvokeMethod frame, else 0.  args points into data. */
size_t st_ipc_frame_get_invoke(const uint8_t* data, size_t size,
                               struct st_ipc_invoke* out);
