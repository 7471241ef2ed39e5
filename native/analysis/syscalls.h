/* System calls: their names by architecture and number.  Numbers that have no
 * name in a table are newer calls, or are not used. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum st_architecture {
  ST_ARCH_UNKNOWN,
  ST_ARCH_X86_64,
  ST_ARCH_ARM64,
  ST_ARCH_X86
};

/* Returns the architecture that uname() calls `name`. */
enum st_architecture st_architecture_of(const uint8_t* name, size_t size);
/* Returns the name of a call, as `sys_read`; NULL if it is unknown. */
const char* st_call_name(enum st_architecture architecture, uint32_t number);
/* Returns one more than the highest number that has a name. */
uint32_t st_call_count(enum st_architecture architecture);
