/* Perf registers: those of a sample in user mode, in the kernel's order.
 *
 *   x86-64    ax bx cx dx si di bp sp ip, r8 to r15
 *   aarch64   x0 to x30, sp, pc
 *
 * Unwind tables number them otherwise (unwind_registers.h).  On other processors
 * there are none.
 *
 * Source: asm/perf_regs.h of each processor.
 */
#pragma once

#include "probes/unwind_registers.h"

#if defined(__x86_64__)
enum { ST_PERF_REGISTERS = 17 };
#define ST_PERF_REGISTER_MASK UINT64_C(0xFF01FF)
#elif defined(__aarch64__)
enum { ST_PERF_REGISTERS = 33 };
#define ST_PERF_REGISTER_MASK UINT64_C(0x1FFFFFFFF)
#else
enum { ST_PERF_REGISTERS = 0 };
#define ST_PERF_REGISTER_MASK UINT64_C(0)
#endif

/* Converts the registers of a sample, which are unaligned words. */
void st_perf_registers(const uint8_t* words, struct st_registers* registers);
