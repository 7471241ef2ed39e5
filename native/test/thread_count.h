/* Returns the number of threads of this process, as the kernel counts them. */
#pragma once

#include <stdio.h>

#include "check.h"

static inline unsigned count_threads(void) {
  unsigned count = 0;

  FILE* file = fopen("/proc/self/stat", "r");
  CHECK(file != NULL);
  CHECK_EQ(fscanf(file,
                  "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u "
                  "%*u %*u %*d %*d %*d %*d %u",
                  &count),
           1);
  fclose(file);
  return count;
}
