/* Copies memory that will not be read soon, without loading its destination
 * into the processor's caches.
 *
 * A trace buffer of 64 MB is larger than the caches.  An ordinary copy first
 * loads each line of its destination from memory, and so takes about twice as
 * long, and evicts lines of the traced program.  On x86-64 the lines in the
 * middle are written past the caches; their stores are finished when the
 * function returns.  Elsewhere this is memcpy.
 */
#pragma once

#include <stddef.h>

/* Copies `size` bytes.  The ranges must not overlap. */
void st_copy_uncached(void* to, const void* from, size_t size);
