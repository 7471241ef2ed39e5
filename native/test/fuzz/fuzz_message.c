/* Any sequence of appends gives the message that a plain encoder gives, over
 * heap, over buffers that vanish, and over an array that is too small. */
#define CHECK_ABORTS
#include "../message_check.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  check_message(data, size);
  return 0;
}
