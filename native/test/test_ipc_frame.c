#include "ipc_frame.h"

#include <string.h>

#include "check.h"

static const uint8_t kArgs[] = {1, 2, 3};

/* A frame: length 17
 *  request_id 7
 *  invoke { service 1, method 4, args, drop }. */
static const uint8_t kFrame[] = {
    0x0f, 0, 0,    0, 0x10, 7, 0x2a, 11,   0x08, 1,
    0x10, 4, 0x1a, 3, 1,    2, 3,    0x20, 1,
};

static void encoded_frame_has_the_expected_bytes(void) {
  struct st_ipc_invoke invoke = {
      .request_id = 7,
      .service_id = 1,
      .method_id = 4,
      .args = kArgs,
      .args_size = sizeof kArgs,
      .drop_reply = true,
  };
  uint8_t out[ST_IPC_INVOKE_OVERHEAD + sizeof kArgs];
  CHECK_EQ(st_ipc_frame_put_invoke(out, &invoke), sizeof kFrame);
  CHECK_EQ(memcmp(out, kFrame, sizeof kFrame), 0);
}

static void overhead_constant_covers_the_largest_values(void) {
  static uint8_t args[ST_IPC_MAX_FRAME];
  static uint8_t out[ST_IPC_MAX_FRAME];
  struct st_ipc_invoke invoke = {
      .request_id = UINT64_MAX,
      .service_id = UINT32_MAX,
      .method_id = UINT32_MAX,
      .args = args,
      .args_size = ST_IPC_MAX_FRAME - ST_IPC_INVOKE_OVERHEAD,
      .drop_reply = true,
  };
  size_t size = st_ipc_frame_put_invoke(out, &invoke);
  CHECK(size <= ST_IPC_MAX_FRAME);
  struct st_ipc_invoke back;
  CHECK_EQ(st_ipc_frame_get_invoke(out, size, &back), size);
  CHECK_EQ(back.request_id, UINT64_MAX);
  CHECK_EQ(back.args_size, invoke.args_size);
}

static void encoded_frames_are_parsed_again(void) {
  struct st_ipc_invoke invoke;
  CHECK_EQ(st_ipc_frame_get_invoke(kFrame, sizeof kFrame, &invoke),
           sizeof kFrame);
  CHECK_EQ(invoke.request_id, 7);
  CHECK_EQ(invoke.service_id, 1);
  CHECK_EQ(invoke.method_id, 4);
  CHECK(invoke.drop_reply);
  CHECK_EQ(invoke.args_size, sizeof kArgs);
  CHECK_EQ(memcmp(invoke.args, kArgs, sizeof kArgs), 0);
}

static void incomplete_frames_are_not_parsed(void) {
  struct st_ipc_invoke invoke;
  for (size_t size = 0; size < sizeof kFrame; size++) {
    /* Parses a copy of the frame in a heap block of its exact size, so that
     * ASan detects reads after its end. */
    uint8_t* copy = malloc(size + 1);
    memcpy(copy, kFrame, size);
    CHECK_EQ(st_ipc_frame_get_invoke(copy, size, &invoke), 0);
    free(copy);
  }
}

static void bytes_after_the_frame_are_ignored(void) {
  uint8_t two[2 * sizeof kFrame];
  memcpy(two, kFrame, sizeof kFrame);
  memcpy(two + sizeof kFrame, kFrame, sizeof kFrame);
  struct st_ipc_invoke invoke;
  CHECK_EQ(st_ipc_frame_get_invoke(two, sizeof two, &invoke), sizeof kFrame);
}

static size_t parse(const uint8_t* payload, uint32_t size) {
  uint8_t frame[64];
  memcpy(frame, &size, sizeof size);
  memcpy(frame + sizeof size, payload, size);
  struct st_ipc_invoke invoke;
  return st_ipc_frame_get_invoke(frame, sizeof size + size, &invoke);
}

#define PARSE(...) \
  parse((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static void other_frames_are_left_to_the_general_parser(void) {
  CHECK_EQ(PARSE(0x10, 7), 0);          /* The frame contains no message. */
  CHECK_EQ(PARSE(0x10, 7, 0x1a, 0), 0); /* The message is BindService. */
  /* The frame has two messages: InvokeMethod and BindService. */
  CHECK_EQ(PARSE(0x10, 7, 0x2a, 0, 0x1a, 0), 0);
  /* The length of the args exceeds the frame. */
  CHECK_EQ(PARSE(0x10, 7, 0x2a, 2, 0x1a, 9), 0);
  /* The tag of a field is incomplete. */
  CHECK_EQ(PARSE(0x10, 7, 0x2a, 0, 0xff), 0);
  /* The wire type of a field is wrong. */
  CHECK_EQ(PARSE(0x10, 7, 0x28, 1), 0);
  /* All fields of the frame have their default values. */
  CHECK_EQ(PARSE(0x10, 7, 0x2a, 0), 8);
  /* The field data_for_testing is skipped. */
  CHECK_EQ(PARSE(0x0a, 1, 'x', 0x2a, 0), 9);
  /* An unknown field is skipped. */
  CHECK_EQ(PARSE(0x2a, 0, 0x82, 0x7d, 1, 'x'), 10);
}

static void frames_with_huge_or_zero_length_are_not_parsed(void) {
  struct st_ipc_invoke invoke;
  const uint8_t huge[] = {0xff, 0xff, 0xff, 0xff, 0x10, 1};
  CHECK_EQ(st_ipc_frame_get_invoke(huge, sizeof huge, &invoke), 0);
  const uint8_t empty[] = {0, 0, 0, 0};
  CHECK_EQ(st_ipc_frame_get_invoke(empty, sizeof empty, &invoke), 0);
}

int main(void) {
  RUN(encoded_frame_has_the_expected_bytes);
  RUN(overhead_constant_covers_the_largest_values);
  RUN(encoded_frames_are_parsed_again);
  RUN(incomplete_frames_are_not_parsed);
  RUN(bytes_after_the_frame_are_ignored);
  RUN(other_frames_are_left_to_the_general_parser);
  RUN(frames_with_huge_or_zero_length_are_not_parsed);
  return 0;
}
