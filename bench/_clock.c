/* Measures one read of the trace clock in ns: the unit of bench/track_event.py. */
#include <stdio.h>
#include <time.h>

int main(void) {
  enum { READS = 2000000 };
  struct timespec begin, end, t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  for (int i = 0; i < READS; i++)
    clock_gettime(CLOCK_BOOTTIME, &t);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  double ns = 1e9 * (double)(end.tv_sec - begin.tv_sec) +
              (double)(end.tv_nsec - begin.tv_nsec);
  printf("{\"clock\": %.3f}\n", ns / READS);
  return 0;
}
