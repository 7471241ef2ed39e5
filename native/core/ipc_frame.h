/* IPC frames: encodes and parses InvokeMethod, the frame of every CommitData
 * request.
 *
 *   0          4
 *   | length   | IPCFrame { 2 request_id,
 *   | u32 LE   |            5 msg_invoke_method { 1 service_id, 2 method_id,
 *   |          |                                  3 args_proto, 4 drop_reply } }
 *
 * The Python package stretto.ipc handles all other frames (binding, replies,
 * errors). The parser validates all input; anything but a complete, plainly
 * encoded InvokeMethod frame is left to the general parser of stretto.ipc.
 *
 * Source: docs/formats/ipc.md, "Frames".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  ST_IPC_HEADER_SIZE = 4,
  /* The largest size of a frame, including its header. */
  ST_IPC_MAX_FRAME = 131072,
  /* The largest size of an InvokeMethod frame, not counting the method's
   * arguments. */
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

/* Writes an InvokeMethod frame to `out`, which has room for args_size +
 * ST_IPC_INVOKE_OVERHEAD bytes.  Returns the frame's size. */
size_t st_ipc_frame_put_invoke(uint8_t* out,
                               const struct st_ipc_invoke* invoke);

/* Parses the frame at the start of data into `out`.  If it is a complete
 * InvokeMethod frame, returns its size, including the header.  Otherwise
 * returns 0.  `out->args` points into data. */
size_t st_ipc_frame_get_invoke(const uint8_t* data, size_t size,
                               struct st_ipc_invoke* out);
