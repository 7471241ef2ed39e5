/* Marks functions that run after a wait.  The linker puts them side by side: after
 * a wait the processor's caches have little of their code, so each page of it
 * counts.
 */
#pragma once

#define ST_HOT __attribute__((hot))

/* The same for those whose order counts: the linker sorts them by `number`.  The
 * first one may begin a page. */
#ifdef __ELF__
#define ST_HOT_IN_ORDER(number) \
  __attribute__((hot, section(".text.sorted." #number)))
#else
#define ST_HOT_IN_ORDER(number) ST_HOT
#endif
#define ST_BEGINS_PAGE __attribute__((aligned(4096)))

/* Marks functions for unusual cases.  The linker puts them elsewhere, so that what
 * runs after a wait stays short. */
#define ST_RARE __attribute__((noinline, cold))

/* Marks variables of the same library: their address needs no table. */
#define ST_OWN __attribute__((visibility("hidden")))
