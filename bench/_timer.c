/* Sleeps for N ns, again and again: what a sampler costs on this machine before
 * it has read anything. */
#include <stdlib.h>
#include <time.h>

int main(int count, char** arguments) {
  long period = count > 1 ? atol(arguments[1]) : 1000000;
  struct timespec next;
  for (;;) {
    clock_gettime(CLOCK_MONOTONIC, &next);
    next.tv_nsec += period;
    next.tv_sec += next.tv_nsec / 1000000000;
    next.tv_nsec %= 1000000000;
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
  }
}
