#include "chunk_fragments.h"

#include <string.h>

#include "wire.h"

uint32_t st_copy_fragments(const uint8_t* from, size_t size, uint32_t fragments,
                           uint8_t* to) {
  size_t pos = 0;
  for (uint32_t i = 0; i < fragments; i++) {
    size_t start = pos;
    do {
      if (pos == size || pos - start == ST_MAX_VARINT)
        return i;
      to[pos] = from[pos];
    } while (to[pos++] & 0x80);
    uint64_t n = 0;
    st_get_varint(to + start, to + pos, &n);
    if (n > size - pos)
      return i;
    memcpy(to + pos, from + pos, n);
    pos += n;
  }
  return fragments;
}
