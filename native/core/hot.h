/* Marks functions that run after a wait.  The linker puts them side by side: after
 * a wait the processor's caches have little of their code, so each page of it
 * counts.
 */
#pragma once

#define ST_HOT __attribute__((hot))

/* Marks functions for unusual cases.  The linker puts them elsewhere, so that what
 * runs after a wait stays short. */
#define ST_RARE __attribute__((noinline, cold))

/* Marks variables of the same library: their address needs no table. */
#define ST_OWN __attribute__((visibility("hidden")))
