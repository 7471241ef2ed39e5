/* Tests of the uncached copy: all alignments, sizes around a line. */
#include "uncached_copy.h"

#include <stdint.h>
#include <string.h>

#include "check.h"

enum { LINE = 64, MOST = 5 * LINE, GUARD = 0xee };

static uint8_t from[MOST + LINE], to[MOST + 3 * LINE];

static void check_copy(size_t source, size_t target, size_t size) {
  uint8_t* begin = to + LINE + target;
  memset(to, GUARD, sizeof to);
  st_copy_uncached(begin, from + source, size);
  CHECK(memcmp(begin, from + source, size) == 0);
  for (uint8_t* p = to; p < begin; p++)
    CHECK_EQ(*p, GUARD);
  for (uint8_t* p = begin + size; p < to + sizeof to; p++)
    CHECK_EQ(*p, GUARD);
}

static void bytes_are_copied_and_none_around_them(void) {
  for (size_t i = 0; i < sizeof from; i++)
    from[i] = (uint8_t)(i * 7 + i / LINE);
  for (size_t target = 0; target < LINE; target++)
    for (size_t size = 0; size <= MOST; size += size % LINE > 1 ? 13 : 1)
      check_copy((target * 5) % LINE, target, size);
}

int main(void) {
  RUN(bytes_are_copied_and_none_around_them);
  return 0;
}
