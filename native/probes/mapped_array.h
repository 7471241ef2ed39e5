/* Mapped arrays: arrays that grow without malloc.
 *
 * In the child of a clone a lock of malloc may be held by a thread that does not
 * exist there.  So the child asks the kernel for pages itself; the kernel moves
 * the pages of an array that grows, and copies nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define ST_MAPPED_ARRAY(type) \
  struct {                    \
    type* data;               \
    size_t size, capacity;    \
  }

/* Returns pages for at least `bytes`, which are zero; NULL if there are none. */
void* st_mapped_new(size_t bytes);
void st_mapped_free(void* data, size_t bytes);
/* Makes an array of `capacity` items larger, to at least `needed`; new items are
 * zero.  Returns false, with the array as it was, when out of memory. */
bool st_mapped_grow(void** data, size_t* capacity, size_t needed, size_t item);

/* Makes room for one more item.  Returns false when out of memory. */
#define ST_MAPPED_RESERVE(a)                                         \
  ((a)->size < (a)->capacity ||                                      \
   st_mapped_grow((void**)&(a)->data, &(a)->capacity, (a)->size + 1, \
                  sizeof *(a)->data))
