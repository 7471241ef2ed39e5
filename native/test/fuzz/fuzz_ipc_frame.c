/* Fuzzes a stream of frames with any bytes: the parser must stay inside them,
 * and an accepted frame must survive encoding and parsing again. */
#define CHECK_ABORTS
#include <string.h>

#include "check.h"
#include "ipc_frame.h"

static void check_again(const struct st_ipc_invoke* invoke) {
  static uint8_t frame[ST_IPC_MAX_FRAME + ST_IPC_INVOKE_OVERHEAD];
  struct st_ipc_invoke again;
  size_t size = st_ipc_frame_put_invoke(frame, invoke);
  if (size > ST_IPC_MAX_FRAME)
    /* This encoder may write the ids with more bytes than the input did, which
     * makes the frame too long. */
    return;
  CHECK_EQ(st_ipc_frame_get_invoke(frame, size, &again), size);
  CHECK_EQ(again.request_id, invoke->request_id);
  CHECK_EQ(again.service_id, invoke->service_id);
  CHECK_EQ(again.method_id, invoke->method_id);
  CHECK_EQ(again.drop_reply, invoke->drop_reply);
  CHECK_EQ(again.args_size, invoke->args_size);
  if (invoke->args_size)
    CHECK_EQ(memcmp(again.args, invoke->args, invoke->args_size), 0);
}

static void parse_stream(const uint8_t* data, size_t size) {
  struct st_ipc_invoke invoke;
  size_t n;
  while ((n = st_ipc_frame_get_invoke(data, size, &invoke))) {
    CHECK(n <= size);
    if (invoke.args_size)
      CHECK(invoke.args >= data && invoke.args + invoke.args_size <= data + n);
    check_again(&invoke);
    data += n;
    size -= n;
  }
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  parse_stream(data, size);
  /* Puts the whole input into one frame as its payload, because mutations
   * rarely find a right frame length. */
  if (size > ST_IPC_MAX_FRAME - ST_IPC_HEADER_SIZE)
    return 0;
  uint8_t* frame = malloc(size + ST_IPC_HEADER_SIZE);
  uint32_t length = (uint32_t)size;
  memcpy(frame, &length, sizeof length);
  if (size)
    memcpy(frame + ST_IPC_HEADER_SIZE, data, size);
  parse_stream(frame, size + ST_IPC_HEADER_SIZE);
  free(frame);
  return 0;
}
