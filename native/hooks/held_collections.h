/* Held collections: threads of ours work with the GIL, and meanwhile no garbage
 * collection begins by itself.  A finalizer of the program must not run on a
 * thread that the program doesn't know.
 *
 *   hold      the first holder keeps gc.get_threshold()[0], and sets it to 0
 *   release   the last holder sets it back
 *
 * With a threshold of 0 the interpreter begins no collection; what the program
 * asks for by gc.collect(), and a collection that runs already, is done as ever.
 * A holder may lose the GIL to a thread of the program.  That one may set a
 * threshold: then this one stays.
 *
 * Limits: the main interpreter.  A program that reads the threshold, or sets it to
 * 0, while a holder has lost the GIL finds 0, or gets the old one again.  All
 * functions need the GIL.
 */
#pragma once

#include <stdbool.h>

/* Called before the first hold, on a thread of the program.  Returns false if the
 * module `gc` can't be used. */
bool st_collections_can_be_held(void);
void st_hold_collections(void);
void st_release_collections(void);
