/* Perf events: opens the events of a CPU.
 *
 *   leader    the event that takes samples; it has the ring buffer
 *   followers events of its group, whose counts are in each sample
 *
 * All events count on one CPU, for all processes.  They are opened disabled, and
 * the group is enabled and disabled by its leader.
 *
 * Source: perf_event_open(2).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What is counted, as in perf_event_attr. */
struct st_perf_event {
  uint32_t type;
  uint64_t config, config1, config2;
  bool exclude_user, exclude_kernel, exclude_hypervisor;
  /* The filter of a tracepoint; NULL for none. */
  const char* filter;
};

/* When the leader takes a sample, and what the sample has. */
struct st_perf_sampling {
  /* Samples per second; 0: a sample whenever the count has increased by
   * `period`; if that is 0, too, there are no samples. */
  uint64_t frequency, period;
  int32_t clock; /* A clockid_t. */
  bool kernel_frames, user_frames;
  /* Whether the program's frames are unwound later: samples have its registers and
   * the top of its stack, instead of what frame pointers lead to. */
  bool user_stack;
};

static inline bool st_perf_has_stacks(const struct st_perf_sampling* s) {
  return s->kernel_frames || s->user_frames;
}

/* Opens an event.  A follower has the leader's descriptor as `group`, the same
 * clock, and no samples; for the leader `group` is -1.  Returns the descriptor, or -1 with
 * errno set. */
int st_perf_event_open(const struct st_perf_event* event,
                       const struct st_perf_sampling* sampling, int cpu,
                       int group);
/* Starts or stops the leader and its group.  Returns false with errno set on
 * failure. */
bool st_perf_event_enable(int leader, bool enable);
