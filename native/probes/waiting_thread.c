#include "probes/waiting_thread.h"

#include <stdlib.h>

#include "probes/own_thread_file.h"

bool st_schedstat_waited_ns(const char* text, uint64_t* ns) {
  char *second, *end;
  strtoull(text, &second, 10);
  *ns = strtoull(second, &end, 10);
  return second != text && end != second;
}

bool st_thread_waited_ns(uint64_t native_id, uint64_t* ns) {
  char text[128];
  return st_read_own_thread_file(native_id, "schedstat", text, sizeof text) &&
         st_schedstat_waited_ns(text, ns);
}
