#include "bind/track_event/template_cache.h"

void template_cache_free(struct template_cache* c) {
  for (int i = 0; c && i < TEMPLATE_CACHE_ENTRIES; i++)
    PyMem_RawFree(c->entries[i].block);
  PyMem_RawFree(c);
}
