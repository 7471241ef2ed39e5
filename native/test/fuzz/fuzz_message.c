/* Fuzzes sequences of appends: the message must equal that of a plain encoder,
 * in a heap, in buffers that become inaccessible, and in an array that is too
 * small. */
#define CHECK_ABORTS
#include "../message_check.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  check_message(data, size);
  return 0;
}
