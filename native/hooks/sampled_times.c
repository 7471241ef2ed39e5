#include "hooks/sampled_times.h"

#include "hooks/code_records.h"
#include "hooks/cpu_time.h"
#include "hooks/python_layout.h"
#include "hooks/sampler_totals.h"
#include "hooks/shared_totals.h"
#include "probes/blocked_thread.h"

/* After shorter waits, it isn't worth while to ask whether a thread is blocked. */
enum { LONG_WAIT_NS = 100000 };

/* Returns the totals of a function, and makes them on first use.  Returns NULL
 * if the function is unknown or not recorded, or if there is no room. */
static struct st_function_totals* totals_of(struct st_code_record* r) {
  if (!r || atomic_load(&r->state) == ST_CODE_NEVER)
    return NULL;
  if (!r->totals) {
    uint64_t line = (uint64_t)((PyCodeObject*)r->code)->co_firstlineno;
    r->totals = st_totals_add(r->name, r->file, line);
    st_code_record_publish(r);
  }
  return st_totals_at(r->totals);
}

/* Adds running time to a function: to a recursive one only once in a round. */
static void add_time(struct st_code_record* r, uint64_t ran, uint64_t round) {
  struct st_function_totals* t = r && r->round != round ? totals_of(r) : NULL;
  if (!t)
    return;
  r->round = round;
  st_sampler_add(&t->time_ns, ran);
}

/* Adds running time to a function whose own time it is, and to its callers.
 * Returns whether there may be more callers than those. */
static bool add_run(const _Atomic(struct st_code_record*)* calls, uint64_t ran,
                    uint64_t round) {
  struct st_code_record* r = atomic_load(&calls[0]);
  struct st_function_totals* innermost = totals_of(r);
  if (innermost)
    st_sampler_add(&innermost->own_ns, ran);
  int count = 0;
  for (; r; r = atomic_load(&calls[++count]))
    add_time(r, ran, round);
  return count == ST_RUN_CALLS - 1;
}

/* Returns how much of the running time was before the last event, if the
 * innermost function makes calls that may wait. */
static uint64_t before_wait(const struct st_sampled_time* s,
                            const struct st_code_record* innermost) {
  uint64_t last_sample = s->time - s->ran - s->waited;
  uint64_t event = atomic_load(&s->thread->last_event);
  if (!innermost || !innermost->reports_calls || event <= last_sample ||
      !atomic_load(&s->thread->ran[0]))
    return 0;
  return s->ran < event - last_sample ? s->ran : event - last_sample;
}

static struct st_code_record* record_at(const struct st_sampled_time* s,
                                        int index) {
  return index < s->depth ? st_code_record_find(s->frames[index].code) : NULL;
}

/* Whether the thread is blocked, and has not run since the sample: if it has, it
 * may be blocked in another function. */
static bool is_blocked(const struct st_sampled_time* s) {
  return s->waited >= LONG_WAIT_NS &&
         st_thread_is_blocked(s->native_id, st_python_gil()) &&
         st_thread_cpu_ns(s->native_id) == s->cpu_ns;
}

static void add_wait(const struct st_sampled_time* s,
                     struct st_code_record* innermost) {
  innermost->blocks = innermost->blocks || is_blocked(s);
  uint32_t owner = st_wait_owner(&s->thread->owners, innermost->totals,
                                 s->ran == 0, innermost->blocks);
  st_sampler_add(&st_totals_at(owner)->waiting_ns, s->waited);
}

/* Adds waiting time, and running time as own time of the innermost function. */
static void add_own(const struct st_sampled_time* s,
                    struct st_code_record* innermost, uint64_t ran) {
  struct st_function_totals* totals = totals_of(innermost);
  if (totals && s->waited)
    add_wait(s, innermost);
  if (totals)
    st_sampler_add(&totals->own_ns, ran);
  if (innermost && innermost->reports_calls && s->waited > s->ran)
    atomic_store(&s->thread->waited, s->time);
}

/* Returns the running time of the functions on the stack. */
static uint64_t run_on_stack(const struct st_sampled_time* s,
                             uint64_t earlier) {
  return ST_CALLS_ARE_REPORTED
             ? s->ran - earlier
             : st_owned_run(&s->thread->owners, s->ran, s->runs);
}

void st_sampled_times_add(const struct st_sampled_time* s) {
  static uint64_t round;
  struct st_code_record* innermost = record_at(s, 0);
  uint64_t earlier = before_wait(s, innermost);
  uint64_t ran = run_on_stack(s, earlier);
  add_own(s, innermost, ran);
  round += 2;
  bool more = earlier && add_run(s->thread->ran, earlier, round);
  for (int i = s->depth - 1; i >= 0; i--) {
    struct st_code_record* r = record_at(s, i);
    more = more && (!r || r->round < round);
    add_time(r, more ? ran + earlier : ran, round + 1);
  }
}
