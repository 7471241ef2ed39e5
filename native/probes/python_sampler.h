/* Python sampler: samples the Python stacks of another process, and writes the
 * samples as packets of a trace.
 *
 *   run:   at each tick, choose threads -> read their stacks -> write packets
 *   take:  returns the packets; the stack table has the new frames and stacks
 *
 * run ends early when frames are new, so that the caller can read the names of
 * their code while the process still runs.
 *
 * The mode decides which threads are sampled at a tick:
 *
 *   ST_SAMPLE_CPU   those that run, as long as the process has used a period of
 *                   CPU time for each sample: samples x period = CPU time
 *   ST_SAMPLE_WALL  all
 *   ST_SAMPLE_GIL   the one that holds the GIL
 *
 * A tick is at a random moment of its period.  So a program that repeats itself
 * in a multiple of the period doesn't always show the same part of its work.
 *
 * Each sample is a packet (sample_packet.h).
 *
 * Sampling has a budget of CPU time (sampler_budget.h).  Beyond it, the period
 * is longer than the wanted one.  It changes only when packets are taken, so
 * that the caller can write in the trace from where on it holds.  Hits of stacks
 * always count wanted periods.
 *
 * Life cycle: create, then run and take in turns, from one thread at a time;
 * destroy.  The target is neither stopped nor written to, unless C calls of
 * threads that run are wanted (native_sampler.h).  Memory is bounded: run ends
 * early when ST_SAMPLER_MAX_PACKETS bytes wait to be taken.
 *
 * Losses are counted: `torn`, stacks that changed while they were copied;
 * `late`, missed samples or ticks; `unseen`, periods of CPU time in which no
 * known thread was found running; `no_room`, stacks for which the table had no
 * room.  `cut` are the samples that have only the innermost ST_STACK_MAX_DEPTH
 * calls.
 */
#pragma once

#include "probes/native_sampler.h"
#include "probes/python_target.h"
#include "probes/sample_packet.h"
#include "probes/stack_table.h"

enum st_sample_mode { ST_SAMPLE_CPU, ST_SAMPLE_WALL, ST_SAMPLE_GIL };

enum { ST_SAMPLER_MAX_PACKETS = 1 << 20 };

struct st_sampler_config {
  enum st_sample_mode mode;
  uint64_t period_ns;
  /* The sequence id of the packets; 0 if the trace writer gives them one. */
  uint32_t sequence_id;
  /* The time from which the timestamp of the first packet counts:
   * CLOCK_BOOTTIME in us. */
  uint64_t start_us;
  enum st_sample_form form;
};

struct st_sampler_stats {
  uint64_t ticks, samples, torn, late, unseen, no_room, cut;
  /* How many wanted periods the period of the next samples has. */
  uint64_t factor;
};

enum st_run_result {
  ST_RUN_TIME_IS_UP,
  /* The process has ended, or runs another program. */
  ST_RUN_GONE,
  /* There is no room for more packets: take them, and run again. */
  ST_RUN_FULL,
  /* Some milliseconds ago, frames came into the stack table. */
  ST_RUN_NEW_FRAMES,
};

struct st_python_sampler;

/* Creates a sampler.  Returns NULL when out of memory. */
struct st_python_sampler* st_python_sampler_create(
    const struct st_python_target* target,
    const struct st_sampler_config* config);
void st_python_sampler_destroy(struct st_python_sampler* s);

/* Adds the C calls to all further samples: see st_native_sampler_create().
 * Called once, before the first run.  Returns false when out of memory. */
bool st_python_sampler_add_native(struct st_python_sampler* s, bool may_stop);
/* Returns what samples the C calls; NULL if nothing does. */
struct st_native_sampler* st_python_sampler_native(
    const struct st_python_sampler* s);

/* Samples for `duration_ns`.  Returns why it ended. */
enum st_run_result st_python_sampler_run(struct st_python_sampler* s,
                                         uint64_t duration_ns);

/* Samples all threads once, and calls `visit` for each.  `depth` is the number
 * of frames or a negative error.  Returns false if no interpreter can be read,
 * or if `visit` has returned false, which ends the dump. */
struct st_thread_stack {
  uint64_t state, native_id;
  int depth;
  bool holds_gil;
  const uint32_t* frames; /* Numbers in the table, the outermost first. */
};
typedef bool (*st_visit_stack)(void* self, const struct st_thread_stack* stack);
bool st_python_sampler_dump(struct st_python_sampler* s, st_visit_stack visit,
                            void* self);

/* Returns the packets since the last call, and their size.  They are valid
 * until the next run.  Then reviews the budget: st_sampler_stats.factor is that
 * of the next run. */
const uint8_t* st_python_sampler_take(struct st_python_sampler* s,
                                      size_t* size);
/* Reviews the budget after a time in which the samples have taken a part of the
 * CPU time. */
void st_python_sampler_review(struct st_python_sampler* s, uint64_t elapsed_ns,
                              uint64_t cpu_ns);
/* Removes all frames and stacks from the table. */
void st_python_sampler_clear(struct st_python_sampler* s);
struct st_stack_table* st_python_sampler_table(struct st_python_sampler* s);
struct st_sampler_stats st_python_sampler_stats(
    const struct st_python_sampler* s);
