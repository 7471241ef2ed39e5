/* Copies fragments out of a chunk that its writer is still filling. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Copies the first `fragments` fragments of a payload of `size` bytes.  Each
 * fragment is `varint size, bytes`, and its size is checked.  Reads no bytes
 * after these fragments, because the writer may be changing those bytes.
 * Returns the number of valid fragments. */
uint32_t st_copy_fragments(const uint8_t* from, size_t size, uint32_t fragments,
                           uint8_t* to);
