#include "chunk_fragments.h"

#include <string.h>

#include "check.h"

static uint8_t g_copy[64];

static uint32_t copy(const char* payload, size_t size, uint32_t fragments) {
  memset(g_copy, 0xEE, sizeof g_copy);
  return st_copy_fragments((const uint8_t*)payload, size, fragments, g_copy);
}

static void only_the_requested_fragments_are_copied(void) {
  CHECK_EQ(copy("\3one\3two", 8, 1), 1);
  CHECK_EQ(memcmp(g_copy, "\3one\xEE", 5), 0);
  CHECK_EQ(copy("\3one\3two", 8, 2), 2);
  CHECK_EQ(memcmp(g_copy, "\3one\3two\xEE", 9), 0);
  CHECK_EQ(copy("\3one", 4, 0), 0);
  CHECK_EQ(g_copy[0], 0xEE);
}

static void redundant_and_zero_sizes_are_valid(void) {
  CHECK_EQ(copy("\x81\x80\x80\0x\0\1y", 8, 3), 3);
  CHECK_EQ(memcmp(g_copy, "\x81\x80\x80\0x\0\1y", 8), 0);
}

static void fragments_with_wrong_sizes_are_not_copied(void) {
  /* The size of the second fragment exceeds the remaining bytes. */
  CHECK_EQ(copy("\3one\4two", 8, 2), 1);
  /* The size of the second fragment is unterminated. */
  CHECK_EQ(copy("\3one\x83", 5, 2), 1);
  /* The payload contains only one fragment. */
  CHECK_EQ(copy("\3one", 4, 2), 1);
  CHECK_EQ(copy("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 11, 1), 0);
  CHECK_EQ(copy("\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 10, 1), 0);
}

int main(void) {
  RUN(only_the_requested_fragments_are_copied);
  RUN(redundant_and_zero_sizes_are_valid);
  RUN(fragments_with_wrong_sizes_are_not_copied);
  return 0;
}
