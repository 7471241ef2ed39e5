/* Native stack: the C functions of a thread of another process, while it waits.
 *
 * The kernel tells the program counter and the stack pointer of a thread that
 * waits in a system call (/proc/PID/task/TID/syscall).  eh_frame.h finds the
 * callers, as far as the tables of the files say, and as registers are known:
 * those that no function below has saved are not. */
#pragma once

#include "probes/eh_frame.h"

/* Code of a file in memory, and the address of the file's .eh_frame_hdr. */
struct st_code_range {
  uint64_t start, end, header;
};

enum { ST_NATIVE_MAX_DEPTH = 512 };

/* Stores an address in the code of each call, the innermost first, in pcs[0 ..
 * ST_NATIVE_MAX_DEPTH): that of a call instruction, or where the function is
 * interrupted.  Returns how many were found. */
int st_native_stack(const struct st_memory* memory,
                    const struct st_code_range* ranges, int range_count,
                    uint64_t pc, uint64_t sp, uint64_t* pcs);
