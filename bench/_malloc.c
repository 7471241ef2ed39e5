/* A program that does nothing but malloc and free; prints its CPU time in s. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BLOCKS = 4096, CALLS = 10000000 };

static void* kept[BLOCKS];

int main(void) {
  struct timespec cpu;
  unsigned random = 1;
  for (int i = 0; i < CALLS; i++) {
    random = random * 1103515245 + 12345;
    unsigned at = (random >> 16) % BLOCKS;
    free(kept[at]);
    kept[at] = malloc(16 + (random >> 8) % 256);
    *(volatile char*)kept[at] = 1;
  }
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
  printf("[%.6f, 0]\n", (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9);
  return 0;
}
