/* Flow ids as the numbers of a stream that a key names.
 *
 * Two processes that know the key compute the same ids without a message
 * between them.
 */
#pragma once

#include <stdint.h>

static inline uint64_t flow_mix(uint64_t x) { /* splitmix64's finalizer */
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/* The index-th number of the stream that key names. */
static inline uint64_t flow_stream(uint64_t key, uint64_t index) {
  return flow_mix(key + 0x9E3779B97F4A7C15u * index);
}
