#include "bind/track_event/call_cache.h"

void call_cache_free(struct call_cache* c) {
  if (!c)
    return;
  for (uint32_t i = 0; c->table.slots && i <= c->table.mask; i++)
    Py_XDECREF((PyObject*)c->table.slots[i].code);
  st_call_table_destroy(&c->table);
  PyMem_RawFree(c);
}
