/* The names of our own threads, in the traced program: what belongs to the program
 * leaves them out.
 */
#pragma once

#include <stdbool.h>
#include <string.h>

#define ST_OWN_THREADS "stretto-"

/* Whether a thread with this name is ours. */
static inline bool st_is_own_thread(const char* name) {
  return strncmp(name, ST_OWN_THREADS, strlen(ST_OWN_THREADS)) == 0;
}
