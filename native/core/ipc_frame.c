#include "ipc_frame.h"

#include <string.h>

#include "decoder.h"
#include "wire.h"

enum {
  FRAME_DATA_FOR_TESTING = 1,
  FRAME_REQUEST_ID = 2,
  FRAME_INVOKE_METHOD = 5,
  FRAME_LAST_KNOWN = 8,

  INVOKE_SERVICE_ID = 1,
  INVOKE_METHOD_ID = 2,
  INVOKE_ARGS = 3,
  INVOKE_DROP_REPLY = 4,
};

static size_t invoke_size(const struct st_ipc_invoke* invoke) {
  return 1 + st_varint_size(invoke->service_id) + 1 +
         st_varint_size(invoke->method_id) + 1 +
         st_varint_size(invoke->args_size) + invoke->args_size +
         (invoke->drop_reply ? 2 : 0);
}

size_t st_ipc_frame_put_invoke(uint8_t* out,
                               const struct st_ipc_invoke* invoke) {
  uint8_t* p = out + ST_IPC_HEADER_SIZE;
  p = st_put_u64_field(p, FRAME_REQUEST_ID, invoke->request_id);
  p = st_put_tag(p, FRAME_INVOKE_METHOD, ST_WIRE_DELIMITED);
  p = st_put_varint(p, invoke_size(invoke));
  p = st_put_u64_field(p, INVOKE_SERVICE_ID, invoke->service_id);
  p = st_put_u64_field(p, INVOKE_METHOD_ID, invoke->method_id);
  p = st_put_tag(p, INVOKE_ARGS, ST_WIRE_DELIMITED);
  p = st_put_varint(p, invoke->args_size);
  if (invoke->args_size > 0)
    memcpy(p, invoke->args, invoke->args_size);
  p += invoke->args_size;
  if (invoke->drop_reply)
    p = st_put_u64_field(p, INVOKE_DROP_REPLY, 1);

  uint32_t length = (uint32_t)(p - out) - ST_IPC_HEADER_SIZE;
  memcpy(out, &length, sizeof length);
  return (size_t)(p - out);
}

/* *out keeps the values of an earlier occurrence: protobuf merges the
 * occurrences of a submessage that is not repeated. */
static bool get_invoke_method(const uint8_t* data, size_t size,
                              struct st_ipc_invoke* out) {
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, data, size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == INVOKE_ARGS && f.wire_type == ST_WIRE_DELIMITED) {
      out->args = f.data;
      out->args_size = f.size;
    }
    if (f.wire_type != ST_WIRE_VARINT)
      continue;
    if (f.number == INVOKE_SERVICE_ID)
      out->service_id = (uint32_t)f.value;
    if (f.number == INVOKE_METHOD_ID)
      out->method_id = (uint32_t)f.value;
    if (f.number == INVOKE_DROP_REPLY)
      out->drop_reply = f.value != 0;
  }
  return st_decoder_left(&d) == 0;
}

static bool get_frame(const uint8_t* data, size_t size,
                      struct st_ipc_invoke* out) {
  bool found = false;
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, data, size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == FRAME_REQUEST_ID && f.wire_type == ST_WIRE_VARINT) {
      out->request_id = f.value;
    } else if (f.number == FRAME_INVOKE_METHOD &&
               f.wire_type == ST_WIRE_DELIMITED) {
      found = true;
      if (!get_invoke_method(f.data, f.size, out))
        return false;
    } else if (f.number != FRAME_DATA_FOR_TESTING &&
               f.number <= FRAME_LAST_KNOWN) {
      /* The member that is set in the frame's oneof is not InvokeMethod. */
      return false;
    }
  }
  return found && st_decoder_left(&d) == 0;
}

size_t st_ipc_frame_get_invoke(const uint8_t* data, size_t size,
                               struct st_ipc_invoke* out) {
  memset(out, 0, sizeof *out);
  if (size < ST_IPC_HEADER_SIZE)
    return 0;
  uint32_t length;
  memcpy(&length, data, sizeof length);
  if (length > ST_IPC_MAX_FRAME - ST_IPC_HEADER_SIZE)
    return 0;
  if (length > size - ST_IPC_HEADER_SIZE)
    return 0;
  if (!get_frame(data + ST_IPC_HEADER_SIZE, length, out))
    return 0;
  return ST_IPC_HEADER_SIZE + length;
}
