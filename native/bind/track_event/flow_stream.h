/* Flow streams: pseudo-random flow ids, computed from a key and an index.
 *
 * Two processes that have the same key compute the same ids independently.
 */
#pragma once

#include <stdint.h>

/* Mixes the bits of a number: the finalizer of splitmix64. */
static inline uint64_t flow_mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/* Returns id number `index` of the sequence of ids that `key` starts. */
static inline uint64_t flow_stream(uint64_t key, uint64_t index) {
  return flow_mix(key + 0x9E3779B97F4A7C15u * index);
}
