#include "syscalls.h"

#include <string.h>

#include "syscall_names.h"

static const struct {
  const char* const* names;
  size_t count;
} kTables[] = {
    [ST_ARCH_X86_64] = {kX86_64Calls,
                        sizeof kX86_64Calls / sizeof *kX86_64Calls},
    [ST_ARCH_ARM64] = {kArm64Calls, sizeof kArm64Calls / sizeof *kArm64Calls},
    [ST_ARCH_X86] = {kX86Calls, sizeof kX86Calls / sizeof *kX86Calls}};

enum st_architecture st_architecture_of(const uint8_t* name, size_t size) {
  static const char* const kNames[] = {[ST_ARCH_X86_64] = "x86_64",
                                       [ST_ARCH_ARM64] = "aarch64",
                                       [ST_ARCH_X86] = "i686"};
  for (uint32_t i = ST_ARCH_UNKNOWN + 1; i < sizeof kNames / sizeof *kNames;
       i++) {
    if (size == strlen(kNames[i]) && memcmp(name, kNames[i], size) == 0)
      return i;
  }
  return ST_ARCH_UNKNOWN;
}

const char* st_call_name(enum st_architecture architecture, uint32_t number) {
  return number < kTables[architecture].count
             ? kTables[architecture].names[number]
             : NULL;
}

uint32_t st_call_count(enum st_architecture architecture) {
  return (uint32_t)kTables[architecture].count;
}
