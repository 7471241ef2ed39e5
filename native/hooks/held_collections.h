/* Held collections: threads of ours work with the GIL, and meanwhile they begin no
 * garbage collection.  A finalizer of the program must not run on a thread that the
 * program doesn't know.
 *
 * The interpreter collects when the count of new objects exceeds a threshold.
 *
 *   hold      count -= ST_HELD_OBJECTS: room for the objects of our thread
 *   release   count += ST_HELD_OBJECTS, unless a collection has set it to 0
 *
 * Our thread may lose the GIL to one of the program.  Then all that the program
 * has set is as it was, and what it asks for by gc.collect() is done; only the next
 * collection by the count may come up to ST_HELD_OBJECTS objects later.
 *
 * Limits: the main interpreter.  gc.get_count() may be negative meanwhile, and stays
 * so in the child if C code forks then.  A hold does nothing in an interpreter that
 * keeps the count elsewhere.  All functions need the GIL.
 */
#pragma once

enum { ST_HELD_OBJECTS = 4096 };

/* Finds out where the interpreter keeps the count.  Called on a thread of the
 * program, before the first hold. */
void st_held_collections_init(void);
/* Returns what st_release_collections() gets. */
int st_hold_collections(void);
void st_release_collections(int held);
