#include "probes/blocked_thread.h"

#include <stdlib.h>
#include <sys/syscall.h>

#include "probes/own_thread_file.h"

bool st_syscall_text_is_blocked(const char* text,
                                struct st_address_range except) {
  char* end;
  long number = strtol(text, &end, 10);
  if (end == text)
    return false;
  uint64_t address = strtoull(end, NULL, 16);
  return number != SYS_futex || address - except.start >= except.size;
}

bool st_thread_is_blocked(uint64_t native_id, struct st_address_range except) {
  char text[256];
  return st_read_own_thread_file(native_id, "syscall", text, sizeof text) &&
         st_syscall_text_is_blocked(text, except);
}
