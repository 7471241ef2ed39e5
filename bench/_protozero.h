/* Values, loop and time measurement for the C and C++ programs of
 * bench/protozero.py.
 *
 * The values have all widths, like those in traces. They come from an array,
 * so that the compiler cannot compute with them in advance. */
#ifndef STRETTO_BENCH_PROTOZERO_H_
#define STRETTO_BENCH_PROTOZERO_H_

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { VALUE_SETS = 1024, MESSAGES = 2000000, NESTED_LEVELS = 3 };

static const char kText[] = "abcdefghijklmnopqrstuvwxyz012345";
enum { TEXT_SIZE = sizeof kText - 1 };

struct values {
  int32_t int32;
  uint32_t uint32;
  int64_t int64;
  uint64_t uint64;
};

static struct values value_sets[VALUE_SETS];

static inline uint64_t next_random(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

/* Returns a random number of 1 to `bits` bits; the number of bits is random. */
static inline uint64_t random_of_width(uint64_t* state, unsigned bits) {
  uint64_t value = next_random(state) >> (64 - bits);
  return value >> next_random(state) % bits;
}

static inline void make_values(void) {
  uint64_t state = 88172645463325252u;
  for (int i = 0; i < VALUE_SETS; i++) {
    struct values* v = &value_sets[i];
    v->int32 = (int32_t)random_of_width(&state, 31);
    v->uint32 = (uint32_t)random_of_width(&state, 32);
    v->int64 = (int64_t)random_of_width(&state, 63);
    v->uint64 = random_of_width(&state, 64);
  }
}

/* Encodes one message; returns its size in bytes. */
typedef size_t (*write_message)(const struct values* v);

static inline double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Measures `write`; prints the name and the ns per message as JSON. */
static inline void measure(const char* name, write_message write,
                           const char* separator) {
  uint64_t bytes = 0;
  for (int i = 0; i < MESSAGES / 20; i++)
    bytes += write(&value_sets[i % VALUE_SETS]);
  double start = now_ns();
  for (int i = 0; i < MESSAGES; i++)
    bytes += write(&value_sets[i % VALUE_SETS]);
  double ns = (now_ns() - start) / MESSAGES;
  if (!bytes)
    abort();
  printf("\"%s\": %.3f%s", name, ns, separator);
}

#endif /* STRETTO_BENCH_PROTOZERO_H_ */
