/* Fragments of a chunk that somebody is still writing. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Copies the first `fragments` of a payload of `size` bytes, and reads nothing
 * else: what lies behind them is being written.  Each is `varint size, bytes`;
 * what it says is not trusted.  Returns how many are good. */
uint32_t st_copy_fragments(const uint8_t* from, size_t size, uint32_t fragments,
                           uint8_t* to);
