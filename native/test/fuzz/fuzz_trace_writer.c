/* Fuzzes a trace writer with any sequence of packets, flushes and freed chunks,
 * in any geometry: accepted packets must be read complete and in order, the
 * others must be counted. */
#define CHECK_ABORTS
#include "../writer_model.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  run_model(data, size);
  return 0;
}
