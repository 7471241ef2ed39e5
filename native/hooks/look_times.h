/* Look times: when the sampling thread (stack_sampler.h) has looked at the
 * stacks.  The last ST_KEPT_LOOKS looks are kept.
 */
#pragma once

#include <stdint.h>

enum { ST_KEPT_LOOKS = 1024 };

/* The begin and end of a look, which reads the stacks of all threads, or as a
 * second look the stacks of some threads.  Times are in ns of CLOCK_BOOTTIME.
 */
struct st_look_time {
  uint64_t begin, end;
};

/* Keeps the times of a look.  Only the sampling thread calls this. */
void st_look_times_add(uint64_t begin, uint64_t end);
/* Copies the times of the last looks, at most ST_KEPT_LOOKS - 1, the oldest
 * first.  Returns their number. */
int st_look_times(struct st_look_time* out);
