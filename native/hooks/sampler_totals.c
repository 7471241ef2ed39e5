#include "hooks/sampler_totals.h"

#include <unistd.h>

#include "hooks/python_layout.h"
#include "hooks/shared_totals.h"
#include "hooks/shown_calls.h"

struct st_sampler_totals st_sampler_totals;

static struct st_thread_times threads[ST_TIMED_THREADS];
/* Stored with release order after the entry is complete. */
static _Atomic uint32_t thread_count;

struct st_thread_times* st_sampler_times_of(uint64_t native_id) {
  uint32_t count = atomic_load(&thread_count), i = 0;
  while (i < count && threads[i].native_id != native_id)
    i++;
  if (i == ST_TIMED_THREADS)
    return NULL;
  if (i == count) {
    threads[i] = (struct st_thread_times){.native_id = native_id};
    atomic_store(&thread_count, count + 1);
  }
  return &threads[i];
}

const struct st_thread_times* st_sampler_times_at(uint32_t index) {
  return index < atomic_load(&thread_count) ? &threads[index] : NULL;
}

void st_sampler_note_gap(uint64_t ns) {
  struct st_sampler_totals* t = &st_sampler_totals;
  st_sampler_add(&t->rounds, 1);
  st_sampler_add(&t->gaps_us, ns / 1000);
  st_sampler_add(&t->squares_us, (ns / 1000) * (ns / 1000));
  if (ns > atomic_load_explicit(&t->longest_gap_ns, memory_order_relaxed))
    atomic_store_explicit(&t->longest_gap_ns, ns, memory_order_relaxed);
}

void st_sampler_note_collection(uint64_t ns) {
  atomic_fetch_add(&st_sampler_totals.collections, 1);
  atomic_fetch_add(&st_sampler_totals.collecting_ns, ns);
}

uint64_t st_sampling_period_ns(void) {
  uint64_t gaps = atomic_load(&st_sampler_totals.gaps_us);
  return gaps ? atomic_load(&st_sampler_totals.squares_us) * 1000 / gaps : 0;
}

void st_sampler_publish(void) {
  const struct st_sampler_totals* l = &st_sampler_totals;
  st_totals_set(ST_TOTALS_PID, (uint64_t)getpid());
  st_totals_set(ST_TOTALS_RUNNING, l->running_ns);
  st_totals_set(ST_TOTALS_WAITING, l->waiting_ns);
  st_totals_set(ST_TOTALS_READY, l->ready_ns);
  st_totals_set(ST_TOTALS_KNOWS_READY, l->knows_ready);
  st_totals_set(ST_TOTALS_PERIOD, st_sampling_period_ns());
  st_totals_set(ST_TOTALS_LONGEST_GAP, l->longest_gap_ns);
  st_totals_set(ST_TOTALS_COUNTED,
                __atomic_load_n(&st_shown_counts.counted, __ATOMIC_RELAXED));
  st_totals_set(ST_TOTALS_THRESHOLD, st_hooks.threshold_ns);
  st_totals_set(ST_TOTALS_SAMPLED, !ST_CALLS_ARE_REPORTED);
  st_totals_set(ST_TOTALS_COLLECTIONS, l->collections);
  st_totals_set(ST_TOTALS_COLLECTING, l->collecting_ns);
  st_totals_set(ST_TOTALS_TOO_DEEP, l->too_deep_ns);
}

void st_sampler_forget_totals(void) {
  st_sampler_totals = (struct st_sampler_totals){0};
  atomic_store(&thread_count, 0);
}
