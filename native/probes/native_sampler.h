/* Native sampler: the C calls of a thread of another process, at the moment of a
 * sample of its Python calls.
 *
 *   begin   registers: of a thread that waits in a system call the kernel tells
 *           pc and sp; one that runs is stopped.  Copy of the stack.
 *   ...     the caller reads the Python calls
 *   end     the thread runs on; or has it run, while it should have waited?
 *   mix     C calls from the copy, Python calls between them
 *
 * Only the copies are made while the thread is stopped, for about 60 us;
 * longer if the sampler has no CPU meanwhile.  The pauses of all threads
 * take at most ST_PAUSE_PERCENT of the time.  Beyond that, and if a thread
 * can't be stopped, a sample has its Python calls only: it counts as `unstopped`.
 *
 * begin, end and idle must be called by a thread that ends soon: the kernel then
 * releases what it has stopped (stopped_thread.h).
 */
#pragma once

#include "probes/code_map.h"
#include "probes/python_threads.h"

enum {
  ST_PAUSE_PERCENT = 5,
  /* The part of a stack that is copied. */
  ST_NATIVE_STACK_BYTES = 32 << 10,
};

struct st_native_stats {
  uint64_t native;    /* Samples with C calls. */
  uint64_t unstopped; /* Samples of threads that run, without them. */
  uint64_t refused;   /* Of these, how many the kernel allowed no stop of. */
  uint64_t paused_ns; /* How long threads were stopped. */
};

struct st_native_sampler;

/* Creates a sampler.  `may_stop` says whether threads that run are stopped; else
 * they have no C calls.  Returns NULL when out of memory. */
struct st_native_sampler* st_native_sampler_create(int pid, bool may_stop);
void st_native_sampler_destroy(struct st_native_sampler* n);
struct st_code_map* st_native_sampler_map(struct st_native_sampler* n);

/* Called first by each thread that uses the sampler: the end of the previous one
 * has released what it traced. */
void st_native_sampler_enter(struct st_native_sampler* n);

/* Prepares a sample of a thread.  Returns false if it will have no C calls: then
 * end must not be called. */
bool st_native_sampler_begin(struct st_native_sampler* n,
                             const struct st_python_thread* thread);
/* Ends what begin has begun.  Returns whether the copies are valid. */
bool st_native_sampler_end(struct st_native_sampler* n,
                           const struct st_python_thread* thread);
/* Adds the C calls to a stack, as st_mixed_stack does. */
int st_native_sampler_mix(struct st_native_sampler* n,
                          struct st_sampled_frame* frames, int depth);
/* Releases a thread that has stopped too late.  Returns false as long as there
 * is one: call it again soon. */
bool st_native_sampler_idle(struct st_native_sampler* n);

struct st_native_stats st_native_sampler_stats(
    const struct st_native_sampler* n);
