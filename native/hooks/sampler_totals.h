/* Sampler totals: what the rounds of the sampling thread (stack_sampler.h) add up
 * to.  The sampling thread writes them, and publishes them in each round
 * (shared_totals.h).
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

/* The number of rounds since the process began, and the total running and
 * waiting time that they found, summed over all threads.  The sampling thread
 * writes these values, and other threads read them for the summary.  Each value
 * is used independently of the others, so relaxed access suffices. */
struct st_sampler_totals {
  _Atomic uint64_t rounds, running_ns, waiting_ns, longest_gap_ns;
  /* The part of `waiting_ns` in which threads were ready to run but had no CPU,
   * and whether the kernel tells it. */
  _Atomic uint64_t ready_ns, knows_ready;
  /* The part of `running_ns` in stacks that were too deep to be read. */
  _Atomic uint64_t too_deep_ns;
  /* The sums of the times between two rounds, and of their squares. */
  _Atomic uint64_t gaps_us, squares_us;
  /* The number of recorded garbage collections, and their CPU time.  The threads
   * on which they run write these two. */
  _Atomic uint64_t collections, collecting_ns;
};

extern struct st_sampler_totals st_sampler_totals;

/* The times of one thread, in the same way; they are sums over its life. */
struct st_thread_times {
  uint64_t native_id;
  _Atomic uint64_t running_ns, waiting_ns, ready_ns;
};

enum { ST_TIMED_THREADS = 64 };

/* Returns the times of a thread, which stay where they are; NULL if
 * ST_TIMED_THREADS other threads have some.  Only the sampling thread calls
 * this. */
struct st_thread_times* st_sampler_times_of(uint64_t native_id);
/* Returns the times at an index; NULL if there are none. */
const struct st_thread_times* st_sampler_times_at(uint32_t index);

/* Adds to a sum that only the sampling thread writes. */
static inline void st_sampler_add(_Atomic uint64_t* sum, uint64_t value) {
  atomic_store_explicit(sum,
                        atomic_load_explicit(sum, memory_order_relaxed) + value,
                        memory_order_relaxed);
}
/* Adds the time between two rounds. */
void st_sampler_note_gap(uint64_t ns);
/* Adds a garbage collection with its CPU time. */
void st_sampler_note_collection(uint64_t ns);
/* Returns the average time between two rounds in ns, weighted by time: one
 * pause of 10 ms has the weight of ten pauses of 1 ms.  Returns 0 before the
 * second round. */
uint64_t st_sampling_period_ns(void);

/* Stores the numbers of this process for the recorder (shared_totals.h).  The
 * sampling thread does so in each round. */
void st_sampler_publish(void);
/* Sets all totals to 0.  May be called only while no sampling thread runs. */
void st_sampler_forget_totals(void);
