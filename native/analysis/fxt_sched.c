/* Scheduling in FXT traces: rows of sched_slice and thread_state.
 *
 *   switch a -> b     a: the run ends, a state begins      b: a run begins
 *   wakeup of a       a: the state W begins
 *
 * The rows of a thread follow each other without gaps: a new one ends the one
 * before it, on whichever CPU that was.
 */
#include "importer.h"

enum { MAX_STATE = 5 };

/* The names of the states of a thread that stops to run. */
static const char* const kStates[MAX_STATE + 1] = {
    "R", /* New. */
    "R", /* Running. */
    "T", /* Suspended. */
    "S", /* Blocked. */
    "Z", /* Dying. */
    "X", /* Dead. */
};

struct st_fxt_schedule* st_fxt_schedule_of(struct st_importer* m,
                                           uint64_t tid) {
  struct st_fxt* f = &m->fxt;
  uint32_t number = st_map_get(&f->schedule_numbers, tid);
  if (!number) {
    *ST_PUSH(&f->schedules) = (struct st_fxt_schedule){
        .tid = tid, .slice = ST_NO_ROW, .state = ST_NO_ROW};
    *st_map_at(&f->schedule_numbers, tid) = number = f->schedules.size;
  }
  return &f->schedules.data[number - 1];
}

static void close_run(struct st_importer* m, struct st_fxt_schedule* s,
                      int64_t ts, st_string end_state) {
  struct st_table* t = &m->storage.tables[ST_SCHED_TABLE];
  if (s->slice == ST_NO_ROW)
    return;
  st_table_set(t, s->slice, ST_SCHED_dur, st_int(ts - s->last_ts));
  st_table_set(t, s->slice, ST_SCHED_end_state, st_text(end_state));
  s->slice = ST_NO_ROW;
}

static void close_state(struct st_importer* m, struct st_fxt_schedule* s,
                        int64_t ts) {
  struct st_table* t = &m->storage.tables[ST_STATE_TABLE];
  if (s->state != ST_NO_ROW)
    st_table_set(t, s->state, ST_STATE_dur, st_int(ts - s->last_ts));
  s->last_ts = ts;
}

static void open_run(struct st_importer* m, struct st_fxt_schedule* s,
                     uint32_t utid, uint32_t cpu, int32_t weight) {
  struct st_table* t = &m->storage.tables[ST_SCHED_TABLE];
  struct st_cell cells[ST_SCHED_COLUMNS] = {
      [ST_SCHED_id] = st_int(t->rows),      [ST_SCHED_ts] = st_int(s->last_ts),
      [ST_SCHED_dur] = st_int(-1),          [ST_SCHED_utid] = st_int(utid),
      [ST_SCHED_priority] = st_int(weight), [ST_SCHED_ucpu] = st_int(cpu),
  };
  s->slice = st_table_add(t, cells);
}

static void open_state(struct st_importer* m, struct st_fxt_schedule* s,
                       uint32_t utid, uint32_t cpu, st_string state) {
  struct st_table* t = &m->storage.tables[ST_STATE_TABLE];
  struct st_cell cells[ST_STATE_COLUMNS] = {
      [ST_STATE_id] = st_int(t->rows),   [ST_STATE_ts] = st_int(s->last_ts),
      [ST_STATE_dur] = st_int(-1),       [ST_STATE_utid] = st_int(utid),
      [ST_STATE_state] = st_text(state), [ST_STATE_ucpu] = st_int(cpu),
  };
  s->state = st_table_add(t, cells);
}

static uint32_t thread_of(struct st_importer* m,
                          const struct st_fxt_schedule* s) {
  return st_thread_get(&m->processes, (uint32_t)s->tid, (uint32_t)s->pid);
}

static void switch_from(struct st_importer* m, int64_t ts,
                        const struct st_fxt_event* e) {
  struct st_fxt_schedule* s = st_fxt_schedule_of(m, e->thread.tid);
  uint32_t utid = thread_of(m, s);
  st_string state =
      e->state <= MAX_STATE ? st_intern(&m->storage, kStates[e->state]) : 0;
  close_run(m, s, ts, state);
  close_state(m, s, ts);
  open_state(m, s, utid, e->cpu, state);
}

static void switch_to(struct st_importer* m, int64_t ts,
                      const struct st_fxt_event* e) {
  struct st_fxt_schedule* s = st_fxt_schedule_of(m, e->next.tid);
  uint32_t utid = thread_of(m, s);
  close_state(m, s, ts);
  open_run(m, s, utid, e->cpu, e->next_weight);
  open_state(m, s, utid, e->cpu, st_intern(&m->storage, "Running"));
}

static void wake(struct st_importer* m, int64_t ts,
                 const struct st_fxt_event* e) {
  struct st_fxt_schedule* s = st_fxt_schedule_of(m, e->thread.tid);
  uint32_t utid = thread_of(m, s);
  close_state(m, s, ts);
  open_state(m, s, utid, e->cpu, st_intern(&m->storage, "W"));
}

static bool is_idle(struct st_importer* m, const struct st_fxt_event* e,
                    struct st_fxt_thread thread, int32_t weight) {
  if (e->is_legacy)
    return !st_fxt_schedule_of(m, thread.tid)->pid && !weight;
  return weight == INT32_MIN;
}

void st_fxt_schedule(struct st_importer* m, int64_t ts,
                     const struct st_fxt_event* e) {
  if (e->cpu >= ST_MAX_CPUS) {
    st_fxt_error(m, "fuchsia_invalid_event");
    return;
  }
  bool was_idle = is_idle(m, e, e->thread, e->weight);
  bool becomes_idle =
      e->kind == ST_FXT_WAKE || is_idle(m, e, e->next, e->next_weight);
  if (!was_idle || !becomes_idle)
    st_cpu_get(&m->machine->cpus, e->cpu);
  if (e->kind == ST_FXT_WAKE) {
    if (!was_idle)
      wake(m, ts, e);
    return;
  }
  if (!was_idle)
    switch_from(m, ts, e);
  if (!becomes_idle)
    switch_to(m, ts, e);
}
