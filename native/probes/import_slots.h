/* Import slots: observes the calls that one loaded library makes to a function
 * of another.
 *
 * A library calls functions of others by addresses in a table of its own (the
 * global offset table).  Its relocations say which slot of the table belongs to
 * which name:
 *
 *   libpython   call *slot  ->  slot { address }  ->  pthread_cond_timedwait
 *                                 relocation { slot, symbol, JUMP_SLOT }
 *
 * st_import_replace() stores the address of another function there, so that
 * only the calls of this library go to it; calls that are already inside of the
 * function return as before.  A slot in the part of the library that is
 * read-only after its start (RELRO) is made writable for the time of the store.
 *
 *   find -> replace -> restore     on one thread at a time; calls may be under
 *                                  way on other threads
 *
 * Before the first call, a slot may have the address of a stub that looks the
 * function up.  The function that replaces it must therefore call the other one
 * by its own name, not by the address that was in the slot.  So a slot that
 * another tool has replaced already is left alone: st_import_find() says so.
 *
 * Limits: ELF of 64 bits on x86-64 and AArch64.  A function that was linked
 * statically has no slot.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { ST_IMPORT_SLOTS = 4 };

struct st_import {
  void** slots[ST_IMPORT_SLOTS];
  void* originals[ST_IMPORT_SLOTS];
  unsigned count;
  /* The addresses that are read-only after the start of the library. */
  uintptr_t read_only_begin, read_only_end;
};

/* Finds the slots of the function `name`, whose address is `function`, in the
 * library that contains `address`.  Returns NULL, or the reason why there are
 * none: a text that never changes, which ends no sentence. */
const char* st_import_find(struct st_import* import, const void* address,
                           const char* name, const void* function);

/* Stores the address of a function in all slots.  Returns false if one cannot
 * be written; then all have their original address. */
bool st_import_replace(struct st_import* import, void* function);

/* Stores the original addresses in the slots that have that of `function`. */
void st_import_restore(struct st_import* import, void* function);
