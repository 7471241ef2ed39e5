#include "sched.h"

#include <stdlib.h>

/* Flags of kernel events that were recorded in an interrupt. */
enum { HARD_IRQ = 8, SOFT_IRQ = 16 };

void st_sched_init(struct st_sched* s, struct st_storage* storage,
                   const struct st_processes* processes) {
  *s = (struct st_sched){
      .storage = storage,
      .processes = processes,
      .running = st_intern(storage, "Running"),
      .runnable = st_intern(storage, "R"),
  };
}

struct st_running* st_sched_running(struct st_sched* s, uint32_t cpu) {
  uint32_t number = s->cpus->machine * ST_MAX_CPUS + cpu;
  while (s->by_cpu.size <= number)
    *ST_PUSH(&s->by_cpu) = (struct st_running){ST_NO_ROW, ST_NO_ROW, 0, 0};
  return &s->by_cpu.data[number];
}

void st_sched_end(struct st_sched* s, uint32_t cpu, int64_t ts,
                  st_string state) {
  struct st_table* t = &s->storage->tables[ST_SCHED_TABLE];
  uint32_t row = st_sched_running(s, cpu)->slice;
  if (row == ST_NO_ROW)
    return;
  int64_t begin = st_table_get(t, row, ST_SCHED_ts).i;
  st_table_set(t, row, ST_SCHED_dur, st_int(ts - begin));
  st_table_set(t, row, ST_SCHED_end_state, st_text(state));
}

void st_sched_begin(struct st_sched* s, uint32_t cpu, int64_t ts, uint32_t utid,
                    int32_t priority) {
  struct st_table* t = &s->storage->tables[ST_SCHED_TABLE];
  st_cpu_get(s->cpus, cpu);
  struct st_cell cells[ST_SCHED_COLUMNS] = {
      [ST_SCHED_id] = st_int(t->rows),
      [ST_SCHED_ts] = st_int(ts),
      [ST_SCHED_dur] = st_int(-1),
      [ST_SCHED_utid] = st_int(utid),
      [ST_SCHED_priority] = st_int(priority),
      [ST_SCHED_ucpu] = st_int(st_ucpu(s->cpus, cpu)),
  };
  st_sched_running(s, cpu)->slice = st_table_add(t, cells);
}

static struct st_last_state* last_state(struct st_sched* s, uint32_t utid) {
  while (s->by_utid.size <= utid)
    *ST_PUSH(&s->by_utid) = (struct st_last_state){ST_NO_ROW, ST_NO_ROW, 0};
  return &s->by_utid.data[utid];
}

static struct st_cell irq_context(int32_t flags) {
  if (flags == ST_NO_FLAGS)
    return ST_NULL;
  return st_int((flags & (HARD_IRQ | SOFT_IRQ)) != 0);
}

static void close_state(struct st_sched* s, uint32_t utid, int64_t ts) {
  struct st_table* t = &s->storage->tables[ST_STATE_TABLE];
  uint32_t row = last_state(s, utid)->row;
  if (row != ST_NO_ROW)
    st_table_set(t, row, ST_STATE_dur,
                 st_int(ts - st_table_get(t, row, ST_STATE_ts).i));
}

static void set_waker(struct st_sched* s, struct st_cell cells[],
                      uint32_t waker) {
  const struct st_last_state* last = last_state(s, waker);
  cells[ST_STATE_waker_utid] = st_int(waker);
  if (last->row != ST_NO_ROW && last->state == s->running)
    cells[ST_STATE_waker_id] = st_int(last->row);
}

/* Adds a state without an end.  `waker` and `cpu` are ST_NO_ROW if there is
 * none. */
static void open_state(struct st_sched* s, uint32_t utid, int64_t ts,
                       st_string state, uint32_t cpu, uint32_t waker,
                       int32_t flags) {
  if (st_thread_is_idle(s->processes, utid))
    return;
  struct st_table* t = &s->storage->tables[ST_STATE_TABLE];
  struct st_cell cells[ST_STATE_COLUMNS] = {
      [ST_STATE_id] = st_int(t->rows),
      [ST_STATE_ts] = st_int(ts),
      [ST_STATE_dur] = st_int(-1),
      [ST_STATE_utid] = st_int(utid),
      [ST_STATE_state] = st_text(state),
      [ST_STATE_irq_context] = irq_context(flags),
      [ST_STATE_ucpu] =
          cpu == ST_NO_ROW ? ST_NULL : st_int(st_ucpu(s->cpus, cpu)),
  };
  if (waker != ST_NO_ROW)
    set_waker(s, cells, waker);
  struct st_last_state* last = last_state(s, utid);
  last->row = st_table_add(t, cells);
  last->state = state;
  if (state == s->running)
    last->blocked_row = ST_NO_ROW;
  else if (state != s->runnable)
    last->blocked_row = last->row;
}

void st_sched_switch(struct st_sched* s, uint32_t cpu, int64_t ts,
                     uint32_t prev, st_string state, uint32_t next) {
  /* If the thread wasn't running, events were lost: its last state stays
   * without an end. */
  const struct st_last_state* last = last_state(s, prev);
  if (last->row == ST_NO_ROW || last->state == s->running)
    close_state(s, prev, ts);
  open_state(s, prev, ts, state, ST_NO_ROW, ST_NO_ROW, ST_NO_FLAGS);
  close_state(s, next, ts);
  open_state(s, next, ts, s->running, cpu, ST_NO_ROW, ST_NO_FLAGS);
}

static void add_spurious(struct st_sched* s, int64_t ts, uint32_t state,
                         uint32_t utid, uint32_t waker, int32_t flags) {
  struct st_table* t = &s->storage->tables[ST_SPURIOUS_TABLE];
  struct st_cell cells[ST_SPURIOUS_COLUMNS] = {
      [ST_SPURIOUS_id] = st_int(t->rows),
      [ST_SPURIOUS_ts] = st_int(ts),
      [ST_SPURIOUS_thread_state_id] = st_int(state),
      [ST_SPURIOUS_irq_context] = irq_context(flags),
      [ST_SPURIOUS_utid] = st_int(utid),
      [ST_SPURIOUS_waker_utid] = st_int(waker),
  };
  st_table_add(t, cells);
}

void st_sched_wake(struct st_sched* s, int64_t ts, uint32_t utid,
                   uint32_t waker, int32_t flags) {
  const struct st_last_state* last = last_state(s, utid);
  bool is_awake = last->state == s->running || last->state == s->runnable;
  if (last->row != ST_NO_ROW && is_awake) {
    add_spurious(s, ts, last->row, utid, waker, flags);
    return;
  }
  close_state(s, utid, ts);
  open_state(s, utid, ts, s->runnable, ST_NO_ROW, waker, flags);
}

void st_sched_new(struct st_sched* s, int64_t ts, uint32_t utid,
                  uint32_t creator) {
  open_state(s, utid, ts, s->runnable, ST_NO_ROW, creator, 0);
}

void st_sched_set_state(struct st_sched* s, uint32_t utid, int64_t ts,
                        st_string state, uint32_t cpu) {
  close_state(s, utid, ts);
  open_state(s, utid, ts, state, cpu, ST_NO_ROW, ST_NO_FLAGS);
}

void st_sched_correct_state(struct st_sched* s, uint32_t utid,
                            st_string state) {
  struct st_last_state* last = last_state(s, utid);
  if (last->row == ST_NO_ROW)
    return;
  last->state = state;
  st_table_set(&s->storage->tables[ST_STATE_TABLE], last->row, ST_STATE_state,
               st_text(state));
}

st_string st_sched_last(struct st_sched* s, uint32_t utid) {
  return last_state(s, utid)->state;
}

void st_sched_blocked(struct st_sched* s, uint32_t utid, bool io_wait,
                      st_string function) {
  struct st_table* t = &s->storage->tables[ST_STATE_TABLE];
  uint32_t row = last_state(s, utid)->blocked_row;
  if (row == ST_NO_ROW)
    return;
  st_table_set(t, row, ST_STATE_io_wait, st_int(io_wait));
  if (function)
    st_table_set(t, row, ST_STATE_blocked_function, st_text(function));
}

void st_sched_free(struct st_sched* s) {
  free(s->by_cpu.data);
  free(s->by_utid.data);
}
