/* Python sampler: samples of the Python stacks of another process, as packets
 * of a trace.
 *
 *   run:   sleep until the next tick -> which threads -> their stacks -> packets
 *   take:  the packets, and the frames and stacks that are new since then
 *
 * Which threads are sampled at a tick is the sampler's mode:
 *
 *   ST_SAMPLE_CPU   those that run; one sample for each period of CPU time that
 *                   the process has used, so samples x period = CPU time
 *   ST_SAMPLE_WALL  all
 *   ST_SAMPLE_GIL   the one that holds the GIL
 *
 * Each sample is a TracePacket with a PerfSample:
 *
 *   timestamp (us since the packet before), sequence id, {pid, tid, callstack}
 *
 * Life cycle: create, then run and take in turns, from one thread at a time;
 * destroy.  The target is neither stopped nor written to.  Memory is bounded:
 * run ends early when ST_SAMPLER_MAX_PACKETS bytes wait to be taken.
 *
 * Losses are counted: torn stacks, ticks that were slept over, stacks for which
 * the table had no room.
 */
#pragma once

#include "probes/python_target.h"
#include "probes/stack_table.h"

enum st_sample_mode { ST_SAMPLE_CPU, ST_SAMPLE_WALL, ST_SAMPLE_GIL };

enum { ST_SAMPLER_MAX_PACKETS = 1 << 20 };

struct st_sampler_config {
  enum st_sample_mode mode;
  uint64_t period_ns;
  /* The sequence id of the packets. */
  uint32_t sequence_id;
  /* The time from which the first packet counts: CLOCK_BOOTTIME in us. */
  uint64_t start_us;
};

struct st_sampler_stats {
  uint64_t ticks, samples, torn, late, no_room;
};

enum st_run_result {
  ST_RUN_TIME_IS_UP,
  /* The process has ended, or runs another program. */
  ST_RUN_GONE,
  /* Take what there is, and run again. */
  ST_RUN_FULL,
};

struct st_python_sampler;

/* Returns NULL when out of memory. */
struct st_python_sampler* st_python_sampler_create(
    const struct st_python_target* target,
    const struct st_sampler_config* config);
void st_python_sampler_destroy(struct st_python_sampler* s);

/* Samples for `duration_ns`. */
enum st_run_result st_python_sampler_run(struct st_python_sampler* s,
                                         uint64_t duration_ns);

/* Samples all threads once.  Calls `visit` for each; `depth` is the number of
 * frames or a negative error. */
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
 * until the next run. */
const uint8_t* st_python_sampler_take(struct st_python_sampler* s,
                                      size_t* size);
struct st_stack_table* st_python_sampler_table(struct st_python_sampler* s);
struct st_sampler_stats st_python_sampler_stats(
    const struct st_python_sampler* s);
