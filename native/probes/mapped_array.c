#include "probes/mapped_array.h"

#include <stdint.h>
#include <sys/mman.h>

enum { FIRST_ITEMS = 4096 };

void* st_mapped_new(size_t bytes) {
  void* data = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return data == MAP_FAILED ? NULL : data;
}

void st_mapped_free(void* data, size_t bytes) {
  if (data)
    munmap(data, bytes);
}

bool st_mapped_grow(void** data, size_t* capacity, size_t needed, size_t item) {
  size_t wanted = *capacity ? *capacity : FIRST_ITEMS;
  while (wanted < needed)
    wanted *= 2;
  if (wanted > SIZE_MAX / 2 / item)
    return false;
  void* grown =
      *capacity ? mremap(*data, *capacity * item, wanted * item, MREMAP_MAYMOVE)
                : st_mapped_new(wanted * item);
  if (!grown || grown == MAP_FAILED)
    return false;
  *data = grown;
  *capacity = wanted;
  return true;
}
