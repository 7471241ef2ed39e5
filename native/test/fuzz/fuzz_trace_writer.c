/* Any sequence of packets, flushes and freed chunks, in any geometry: accepted
 * packets come out whole and in order, the others are counted. */
#define CHECK_ABORTS
#include "../writer_model.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  run_model(data, size);
  return 0;
}
