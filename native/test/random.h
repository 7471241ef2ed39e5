/* A small seeded random generator for tests: gives the same numbers on all
 * machines. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Returns the next number of xorshift64*.  The state must not be 0. */
static inline uint64_t random_next(uint64_t* state) {
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return *state * 0x2545F4914F6CDD1Du;
}

/* Returns a number from 0 to limit - 1. */
static inline uint64_t random_below(uint64_t* state, uint64_t limit) {
  return (random_next(state) >> 16) % limit;
}

static inline void random_fill(uint64_t* state, uint8_t* out, size_t size) {
  for (size_t i = 0; i < size; i++)
    out[i] = (uint8_t)(random_next(state) >> 40);
}
