/* Call chain: the return addresses of the calling thread's native stack.
 *
 *   caller of malloc, its caller, ..., _start       the innermost first
 *
 * There are two ways to find them:
 *
 * unwinder        libgcc's, which reads the unwind tables (.eh_frame) that nearly
 *                 every program has, whatever it was compiled with.  It is used
 *                 only where it takes no lock: with a C library and a libgcc that
 *                 have _dl_find_object (glibc 2.35, gcc 12).  Else it could wait
 *                 for a lock of the loader, which a thread holds that waits for us.
 * frame pointers  complete only for code that is compiled with
 *                 -fno-omit-frame-pointer; else the chain ends early, and may skip
 *                 calls.  The caller itself is always right.
 *
 * Both stop at the first frame that is not above the last one, or not on the
 * thread's own stack.  On another stack (a signal stack, a coroutine of a library)
 * the chain is the caller alone.
 *
 * The first chain of a thread asks for the bounds of its stack, which allocates
 * memory.  errno may change.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Finds out if the unwinder can be used.  Without this call, it is not used. */
void st_call_chain_prepare(void);

/* Stores up to `room` return addresses; returns their number, at least 1 if there
 * is room.  `frame` is __builtin_frame_address(0) of the function whose caller is
 * the first address.  That function must not have returned. */
uint32_t st_call_chain(const void* frame, uint64_t* addresses, uint32_t room);
