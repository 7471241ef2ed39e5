/* Fuzzes both slice functions, with any bytes as a trace and as a reply.  They
 * must stay inside their buffers.  Joining packed slices must give the bytes
 * that were packed. */
#define CHECK_ABORTS
#include <string.h>

#include "check.h"
#include "trace_slices.h"

static void check_pack(const uint8_t* data, size_t size, size_t limit) {
  uint8_t* out = malloc(limit + 1);
  size_t written, joined;
  size_t taken = st_slices_pack(data, size, limit, out, &written);
  CHECK(taken <= size && written <= limit);
  uint8_t* back = malloc(written + 1);
  CHECK_EQ(st_slices_join(out, written, back, &joined), written);
  CHECK_EQ(joined, taken);
  if (taken)
    CHECK_EQ(memcmp(back, data, taken), 0);
  free(back);
  free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  check_pack(data, size, 4 * size + 100);
  check_pack(data, size, size / 2);
  uint8_t* out = malloc(size + 1);
  size_t written;
  size_t taken = st_slices_join(data, size, out, &written);
  CHECK(taken <= size && written <= taken);
  free(out);
  return 0;
}
