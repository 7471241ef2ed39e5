/* The names of other threads of this process, as the module threading knows
 * them.  Runs no Python code, so the GIL is not released. */
#pragma once

#include "bind/common/python.h"

enum { ST_THREAD_NAME = 128 };

/* Copies the name of the thread with this native id, in UTF-8, to `name` of
 * ST_THREAD_NAME bytes.  Returns the size of the name.  Returns 0 if the thread
 * has no Thread object or has ended, or if its name is longer. */
size_t st_thread_name(uint64_t native_id, char* name);
