/* Test checks: a minimal unit test framework.
 *
 * A test is a program.  Each case is a `static void name(void)`.  The macro
 * RUN(name) prints the name, then runs the case; main has a RUN() for each case
 * and returns 0. The first failed check prints its position and expression, and
 * ends the program: with exit status 1, or by abort() where CHECK_ABORTS is
 * defined (fuzz targets, so that the driver sees a crash).
 */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static inline _Noreturn void check_failed(void) {
  fflush(NULL);
#ifdef CHECK_ABORTS
  abort();
#else
  exit(1);
#endif
}

static inline void check_eq(uint64_t a, uint64_t b, const char* text,
                            const char* file, int line) {
  if (a == b)
    return;
  fprintf(stderr, "%s:%d: %s failed: %lld (0x%llx) != %lld (0x%llx)\n", file,
          line, text, (long long)a, (unsigned long long)a, (long long)b,
          (unsigned long long)b);
  check_failed();
}

#define CHECK(cond)                                                            \
  do {                                                                         \
    if (!(cond)) {                                                             \
      fprintf(stderr, "%s:%d: CHECK(%s) failed\n", __FILE__, __LINE__, #cond); \
      check_failed();                                                          \
    }                                                                          \
  } while (0)

/* Checks that two integers, of any types, are equal. */
#define CHECK_EQ(a, b)                                                         \
  check_eq((uint64_t)(a), (uint64_t)(b), "CHECK_EQ(" #a ", " #b ")", __FILE__, \
           __LINE__)

#define RUN(test)          \
  do {                     \
    printf("%s\n", #test); \
    fflush(stdout);        \
    test();                \
  } while (0)
