/* Parses kernel events, in the order of their timestamps. */
#include <stdio.h>
#include <string.h>

#include "core/fields.h"
#include "importer.h"

/* The field numbers of FtraceEvent, and constants of the kernel's events. */
enum {
  EVENT_TIMESTAMP = 1,
  EVENT_PID = 2,
  PRINT = 3,
  SCHED_SWITCH = 4,
  CPU_FREQUENCY = 11,
  CPU_FREQUENCY_LIMITS = 12,
  CPU_IDLE = 13,
  CLOCK_ENABLE = 14,
  CLOCK_DISABLE = 15,
  CLOCK_SET_RATE = 16,
  SCHED_BLOCKED_REASON = 18,
  SCHED_WAKING = 20,
  SOFTIRQ_ENTRY = 24,
  SOFTIRQ_EXIT = 25,
  IRQ_HANDLER_ENTRY = 36,
  IRQ_HANDLER_EXIT = 37,
  WORKQUEUE_END = 57,
  WORKQUEUE_START = 58,
  TASK_NEWTASK = 235,
  TASK_RENAME = 236,
  SCHED_PROCESS_FREE = 240,
  SIGNAL_DELIVER = 324,
  SIGNAL_GENERATE = 325,
  BLOCK_IO_START = 546,
  BLOCK_IO_DONE = 547,
  HRTIMER_ENTRY = 553,
  HRTIMER_EXIT = 554,
  LOCAL_TIMER_ENTRY = 559,
  LOCAL_TIMER_EXIT = 560,
  CLONE_THREAD = 0x10000,
  MAX_FIELDS = 9,
};

/* An event while it is parsed. */
struct parsed {
  int64_t ts;
  uint32_t cpu, pid, generation;
  /* The fields of the event's message, by number. */
  struct st_field message, fields[MAX_FIELDS];
};

static void decode(struct parsed* p, struct st_field message) {
  struct st_decoder d;
  struct st_field f;
  memset(p->fields, 0, sizeof p->fields);
  p->message = message;
  st_decoder_init(&d, message.data, message.size);
  while (st_decoder_next(&d, &f)) {
    if (f.number < MAX_FIELDS)
      p->fields[f.number] = f;
  }
}

static uint64_t number(const struct parsed* p, uint32_t field) {
  return p->fields[field].value;
}

static st_string text(struct st_importer* m, const struct parsed* p,
                      uint32_t field) {
  struct st_field f = p->fields[field];
  return f.data ? st_string_add(&m->storage.strings, f.data, f.size) : 0;
}

/* Returns the utid of the thread whose tid is in the field. */
static uint32_t thread(struct st_importer* m, const struct parsed* p,
                       uint32_t field) {
  return st_thread_seen(&m->processes, (uint32_t)number(p, field));
}

static void name_thread(struct st_importer* m, uint32_t utid, st_string name) {
  st_thread_set_name(&m->processes, utid, name, ST_NAME_FTRACE);
}

/* Returns the letters of a thread's state; 0 if the state is invalid.  The bits
 * depend on the version of the kernel. */
static st_string state_of(struct st_importer* m, int64_t raw) {
  static const char kLetters[] = "SDTtXZPxKWNI";
  uint16_t bits = (uint16_t)raw;
  uint32_t kernel = m->machine->kernel ? m->machine->kernel : 4u << 16 | 4;
  uint32_t letters = bits & 0x3F, size = 0;
  bool is_preempted;
  char text[sizeof kLetters];
  if (kernel >= (4u << 16 | 14)) {
    if (bits & 0xFE00) {
      m->ftrace.invalid_states++;
      return 0;
    }
    letters |= (bits & 0x40u) | (bits & 0x80u) << 4;
    is_preempted = bits & 0x100;
  } else {
    /* Here the bits from 6 on mean x, K, W, P and N, in this order. */
    letters |= (bits & 0x1C0u) << 1 | (bits & 0x200u) >> 3 | (bits & 0x400u);
    if (letters == (0x400 | 2))
      letters = 0x800;
    is_preempted = bits & (kernel >= (4u << 16 | 8) ? 0x1000 : 0x800);
  }
  if (!letters)
    return st_intern(&m->storage, is_preempted ? "R+" : "R");
  for (uint32_t i = 0; kLetters[i]; i++) {
    if (letters & 1u << i)
      text[size++] = kLetters[i];
  }
  return st_string_add(&m->storage.strings, text, size);
}

static void parse_switch(struct st_importer* m, const struct parsed* p) {
  struct st_running* running = st_sched_running(&m->sched, p->cpu);
  uint32_t next = thread(m, p, 6);
  name_thread(m, next, text(m, p, 5));
  st_string state = state_of(m, (int64_t)number(p, 4));
  if (running->slice != ST_NO_ROW) {
    if (running->pid == (uint32_t)number(p, 2))
      st_sched_end(&m->sched, p->cpu, p->ts, state);
    else
      m->ftrace.mismatched_switches++;
  }
  uint32_t prev = thread(m, p, 2);
  name_thread(m, prev, text(m, p, 1));
  struct st_raw_switch raw = {.ts = p->ts,
                              .cpu = p->cpu,
                              .prev_utid = prev,
                              .prev_pid = (uint32_t)number(p, 2),
                              .prev_comm = text(m, p, 1),
                              .prev_priority = (int32_t)number(p, 3),
                              .prev_state = (int64_t)number(p, 4),
                              .next_pid = (uint32_t)number(p, 6),
                              .next_comm = text(m, p, 5),
                              .next_priority = (int32_t)number(p, 7)};
  st_raw_switch(m, &raw);
  st_sched_begin(&m->sched, p->cpu, p->ts, next, raw.next_priority);
  running->pid = raw.next_pid;
  running->utid = next;
  running->priority = raw.next_priority;
  st_sched_switch(&m->sched, p->cpu, p->ts, prev, state, next);
}

static void parse_waking(struct st_importer* m, const struct parsed* p) {
  uint32_t wakee = thread(m, p, 2);
  name_thread(m, wakee, text(m, p, 1));
  st_sched_wake(&m->sched, p->ts, wakee, st_thread_seen(&m->processes, p->pid),
                ST_NO_FLAGS);
}

static void parse_new_task(struct st_importer* m, const struct parsed* p) {
  struct st_processes* processes = &m->processes;
  int64_t tid = (uint32_t)number(p, 1);
  st_string name = text(m, p, 2);
  uint32_t creator, created;
  if (!tid) /* An idle thread, created when the machine starts. */
    return;
  if (number(p, 3) & CLONE_THREAD) {
    creator = st_thread_seen(processes, p->pid);
    created = st_thread_start(processes, tid, p->ts);
    name_thread(m, created, name);
    st_threads_associate(processes, creator, created);
  } else {
    uint32_t upid = st_process_start(processes, tid, p->ts, name);
    creator = st_thread_seen(processes, p->pid);
    created = st_thread_seen(processes, tid);
    st_process_set_parent_thread(processes, upid, creator);
  }
  st_sched_new(&m->sched, p->ts, created, creator);
}

static void parse_rename(struct st_importer* m, const struct parsed* p) {
  uint32_t utid = thread(m, p, 1);
  st_string name = text(m, p, 3);
  name_thread(m, utid, name);
  const struct st_thread* t = &m->processes.threads.data[utid];
  if (t->upid != ST_NO_ROW &&
      m->processes.processes.data[t->upid].pid == t->tid)
    st_process_set_name(&m->processes, t->upid, name, true);
}

/* Returns the name of a kernel symbol; 0 if it is missing.  A missing symbol
 * counts as two failed lookups, as in Perfetto: it looks each symbol up a
 * second time, for the table ftrace_event. */
static st_string symbol(struct st_importer* m, const struct parsed* p,
                        uint64_t iid) {
  st_string name = st_interned_text(&m->sequences, p->generation,
                                    ST_FIELD_INTERNED_DATA_KERNEL_SYMBOLS, iid);
  m->sequences.failed_lookups += !name;
  return name;
}

/* Returns the name of a kernel function; its number in hexadecimal if the name
 * is missing. */
static st_string function(struct st_importer* m, const struct parsed* p,
                          uint32_t field) {
  char name[24];
  st_string known = symbol(m, p, number(p, field));
  if (known)
    return known;
  int size = snprintf(name, sizeof name, "%#llx",
                      (unsigned long long)number(p, field));
  return st_string_add(&m->storage.strings, name, (size_t)size);
}

static uint32_t thread_track(struct st_importer* m, uint32_t utid) {
  return st_tracks_thread_row(&m->tracks, utid);
}

static void begin(struct st_importer* m, int64_t ts, int64_t dur,
                  uint32_t track, const char* category, st_string name,
                  struct st_kernel_arg a) {
  st_kernel_begin(m, ts, dur, track, category, name, &a, a.key != NULL);
}

static void end(struct st_importer* m, int64_t ts, uint32_t track,
                const char* category, st_string name, struct st_kernel_arg a) {
  st_kernel_end(m, ts, track, category, name, &a, a.key != NULL);
}

/* Returns the row of a CPU's track, whose name ends with the CPU's number. */
static uint32_t cpu_track(struct st_importer* m, const char* type,
                          const char* name, uint32_t cpu) {
  char text[64];
  int size = snprintf(text, sizeof text, "%s%u", name, cpu);
  struct st_fixed_track f = {
      .type = type,
      .name = st_string_add(&m->storage.strings, text, (size_t)size),
      .dimensions = {{"cpu", .number = cpu}}};
  return st_tracks_fixed_row(&m->tracks, &f);
}

static void parse_interrupt(struct st_importer* m, const struct parsed* p,
                            uint32_t field) {
  static const char* const kActions[] = {
      "HI",       "TIMER",   "NET_TX", "NET_RX",  "BLOCK",
      "IRQ_POLL", "TASKLET", "SCHED",  "HRTIMER", "RCU"};
  struct st_kernel_arg none = {0};
  bool is_soft = field == SOFTIRQ_ENTRY || field == SOFTIRQ_EXIT;
  uint32_t vector = (uint32_t)number(p, 1);
  if (field == SOFTIRQ_ENTRY && vector >= 10)
    return;
  uint32_t track = is_soft ? cpu_track(m, "cpu_softirq", "SoftIrq Cpu ", p->cpu)
                           : cpu_track(m, "cpu_irq", "Irq Cpu ", p->cpu);
  switch (field) {
    case SOFTIRQ_ENTRY:
      begin(m, p->ts, -1, track, "irq",
            st_intern(&m->storage, kActions[vector]), none);
      break;
    case SOFTIRQ_EXIT:
      end(m, p->ts, track, "irq", 0,
          (struct st_kernel_arg){"vec", ST_ARG_INT, vector});
      break;
    case IRQ_HANDLER_ENTRY: {
      char name[255];
      struct st_field f = p->fields[2];
      int size = snprintf(name, sizeof name, "IRQ (%.*s)",
                          (int)(f.size < sizeof name ? f.size : sizeof name),
                          f.data ? (const char*)f.data : "");
      size = size < (int)sizeof name ? size : (int)sizeof name - 1;
      begin(m, p->ts, -1, track, "irq",
            st_string_add(&m->storage.strings, name, (size_t)size), none);
      break;
    }
    case IRQ_HANDLER_EXIT:
      end(m, p->ts, track, "irq", 0,
          (struct st_kernel_arg){
              "ret", ST_ARG_STRING,
              st_intern(&m->storage,
                        number(p, 2) == 1 ? "handled" : "unhandled")});
      break;
    case LOCAL_TIMER_ENTRY:
      begin(m, p->ts, -1, track, "irq",
            st_intern(&m->storage, "IRQ (LocalTimer)"), none);
      break;
    default:
      end(m, p->ts, track, "irq", 0, none);
  }
}

static void parse_timer(struct st_importer* m, const struct parsed* p,
                        bool is_entry) {
  uint32_t track = cpu_track(m, "cpu_hrtimer", "Hrtimer Cpu ", p->cpu);
  if (is_entry)
    begin(m, p->ts, -1, track, "hrtimer", function(m, p, 3),
          (struct st_kernel_arg){0});
  else
    end(m, p->ts, track, "hrtimer", 0, (struct st_kernel_arg){0});
}

static void parse_work(struct st_importer* m, const struct parsed* p,
                       bool is_start) {
  st_string name = is_start ? function(m, p, 2) : 0;
  uint32_t utid = st_thread_seen(&m->processes, p->pid);
  if (is_start)
    begin(m, p->ts, -1, thread_track(m, utid), "workqueue", name,
          (struct st_kernel_arg){"cpu", ST_ARG_INT, p->cpu});
  else
    end(m, p->ts, thread_track(m, utid), "workqueue", 0,
        (struct st_kernel_arg){0});
}

static void parse_signal(struct st_importer* m, const struct parsed* p,
                         bool is_generated) {
  uint32_t utid =
      is_generated ? thread(m, p, 4) : st_thread_seen(&m->processes, p->pid);
  const char* name = is_generated ? "signal_generate" : "signal_deliver";
  int32_t signal = (int32_t)number(p, is_generated ? 6 : 3);
  begin(m, p->ts, 0, thread_track(m, utid), NULL, st_intern(&m->storage, name),
        (struct st_kernel_arg){"signal.sig", ST_ARG_INT, signal});
}

static void parse_block_io(struct st_importer* m, const struct parsed* p,
                           bool is_start) {
  struct st_fixed_track f = {
      .type = "block_io",
      .is_counter = true, /* As in Perfetto, although the track has slices. */
      .dimensions = {{"block_device", .number = (int64_t)number(p, 1)}}};
  uint32_t track = st_tracks_fixed_row(&m->tracks, &f);
  st_string name = st_intern(&m->storage, "block_io");
  struct st_kernel_arg sector = {"sector", ST_ARG_UINT, (int64_t)number(p, 2)};
  if (is_start)
    begin(m, p->ts, -1, track, NULL, name, sector);
  else
    end(m, p->ts, track, NULL, name, sector);
}

static void add_cpu_counter(struct st_importer* m, const struct parsed* p,
                            const char* type, const char* name, uint32_t cpu,
                            double value) {
  struct st_fixed_track f = {.type = type,
                             .name = st_intern(&m->storage, name),
                             .is_counter = true,
                             .dimensions = {{"cpu", .number = cpu}}};
  st_add_counter(m, p->ts, st_tracks_fixed_row(&m->tracks, &f), value);
}

static void parse_frequency_limits(struct st_importer* m,
                                   const struct parsed* p) {
  uint32_t cpu = (uint32_t)number(p, 3);
  char name[40];
  snprintf(name, sizeof name, "Cpu %u Max Freq Limit", cpu);
  add_cpu_counter(m, p, "cpu_max_frequency_limit", name, cpu,
                  (double)(uint32_t)number(p, 2));
  snprintf(name, sizeof name, "Cpu %u Min Freq Limit", cpu);
  add_cpu_counter(m, p, "cpu_min_frequency_limit", name, cpu,
                  (double)(uint32_t)number(p, 1));
}

static void parse_clock(struct st_importer* m, const struct parsed* p,
                        bool is_rate) {
  st_add_counter(
      m, p->ts,
      st_device_counter_row(m, is_rate ? "clock_frequency" : "clock_state",
                            is_rate ? " Frequency" : " State", p->fields[1]),
      (double)number(p, 2));
}

static void parse_print(struct st_importer* m, const struct parsed* p) {
  struct st_field text = p->fields[2];
  st_cut_write(m, p->ts, p->pid);
  st_parse_atrace(m, p->ts, p->pid, text.data, text.size);
}

static void parse_blocked(struct st_importer* m, const struct parsed* p) {
  uint32_t utid = thread(m, p, 1);
  st_sched_blocked(&m->sched, utid, number(p, 3) != 0,
                   symbol(m, p, (uint32_t)number(p, 2)));
}

/* These functions parse events of a kind.  They return false if the event is of
 * another kind: threads and processes, CPUs and clocks, interrupts and work. */
static bool parse_thread_event(struct st_importer* m, const struct parsed* p,
                               uint32_t field) {
  switch (field) {
    case SCHED_SWITCH:
      parse_switch(m, p);
      return true;
    case SCHED_WAKING:
      parse_waking(m, p);
      return true;
    case SCHED_BLOCKED_REASON:
      parse_blocked(m, p);
      return true;
    case SCHED_PROCESS_FREE:
      st_thread_end(&m->processes, (uint32_t)number(p, 2), p->ts);
      return true;
    case TASK_NEWTASK:
      parse_new_task(m, p);
      return true;
    case TASK_RENAME:
      parse_rename(m, p);
      return true;
    default:
      return false;
  }
}

static bool parse_cpu_event(struct st_importer* m, const struct parsed* p,
                            uint32_t field) {
  switch (field) {
    case CPU_FREQUENCY:
      add_cpu_counter(m, p, "cpu_frequency", "cpufreq", (uint32_t)number(p, 2),
                      (double)(uint32_t)number(p, 1));
      return true;
    case CPU_IDLE:
      add_cpu_counter(m, p, "cpu_idle", "cpuidle", (uint32_t)number(p, 2),
                      (double)(uint32_t)number(p, 1));
      return true;
    case CPU_FREQUENCY_LIMITS:
      parse_frequency_limits(m, p);
      return true;
    case CLOCK_ENABLE:
    case CLOCK_DISABLE:
    case CLOCK_SET_RATE:
      parse_clock(m, p, field == CLOCK_SET_RATE);
      return true;
    default:
      return false;
  }
}

static bool parse_work_event(struct st_importer* m, const struct parsed* p,
                             uint32_t field) {
  switch (field) {
    case SOFTIRQ_ENTRY:
    case SOFTIRQ_EXIT:
    case IRQ_HANDLER_ENTRY:
    case IRQ_HANDLER_EXIT:
    case LOCAL_TIMER_ENTRY:
    case LOCAL_TIMER_EXIT:
      parse_interrupt(m, p, field);
      return true;
    case HRTIMER_ENTRY:
    case HRTIMER_EXIT:
      parse_timer(m, p, field == HRTIMER_ENTRY);
      return true;
    case WORKQUEUE_START:
    case WORKQUEUE_END:
      parse_work(m, p, field == WORKQUEUE_START);
      return true;
    case SIGNAL_GENERATE:
    case SIGNAL_DELIVER:
      parse_signal(m, p, field == SIGNAL_GENERATE);
      return true;
    case BLOCK_IO_START:
    case BLOCK_IO_DONE:
      parse_block_io(m, p, field == BLOCK_IO_START);
      return true;
    default:
      return false;
  }
}

static void parse_message(struct st_importer* m, const struct parsed* p,
                          uint32_t field) {
  struct st_kernel_event e = {p->ts,  field,         p->cpu,
                              p->pid, p->generation, p->message};
  if (field == PRINT)
    parse_print(m, p);
  else if (!parse_thread_event(m, p, field) && !parse_cpu_event(m, p, field) &&
           !parse_work_event(m, p, field) && !st_parse_kernel_event(m, &e))
    m->ftrace.unread++;
}

void st_parse_kernel_fields(struct st_importer* m,
                            const struct st_kernel_event* e,
                            const struct st_field* fields) {
  struct parsed p = {.ts = e->ts, .cpu = e->cpu, .pid = e->pid};
  memcpy(p.fields, fields, sizeof p.fields);
  if (!st_parse_memory_event(m, e, fields))
    parse_message(m, &p, e->field);
}

/* Sets the times before which events are dropped. */
static void set_start(struct st_importer* m) {
  struct st_ftrace* f = &m->ftrace;
  if (f->has_start)
    return;
  f->has_start = true;
  f->drop_before = f->preserves_buffer ? 0 : m->tracing_started;
  f->drop_softly_before =
      f->latest_start > f->drop_before ? f->latest_start : f->drop_before;
}

/* Adds an event as a row, if the rows are asked for.  Its thread and its CPU get
 * rows in any case. */
static void add_raw(struct st_importer* m, const struct parsed* p,
                    uint32_t field) {
  struct st_kernel_event e = {p->ts,  field,         p->cpu,
                              p->pid, p->generation, p->message};
  if (st_raw_is_known(m, field)) {
    uint32_t utid = st_thread_seen(&m->processes, p->pid);
    st_cpu_get(&m->machine->cpus, p->cpu);
    st_raw_kernel_event(m, &e, utid);
  } else if (st_raw_is_generic(field)) {
    m->ftrace.descriptor_errors++;
  }
}

static void parse_event(struct st_importer* m, struct parsed* p,
                        const struct st_event* e) {
  struct st_decoder d;
  struct st_field f;
  bool has_pid = false;
  st_decoder_init(&d, e->data, e->size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == EVENT_PID && !has_pid)
      has_pid = true, p->pid = (uint32_t)f.value;
  }
  st_decoder_init(&d, e->data, e->size);
  while (has_pid && st_decoder_next(&d, &f)) {
    if (f.number == EVENT_PID || f.number == EVENT_TIMESTAMP || !f.data)
      continue;
    /* The thread and the CPU of an event get rows, even if the event is
     * dropped. */
    p->message = f;
    if (f.number != SCHED_SWITCH)
      add_raw(m, p, f.number);
    if (p->ts < m->ftrace.drop_softly_before)
      return;
    decode(p, f);
    parse_message(m, p, f.number);
  }
}

static void parse_compact_switch(struct st_importer* m, uint32_t cpu,
                                 const struct st_event* e, bool is_early) {
  struct st_running* running = st_sched_running(&m->sched, cpu);
  struct st_running last = *running;
  uint32_t prev = last.utid, next = st_thread_seen(&m->processes, e->pid);
  name_thread(m, next, e->comm);
  running->utid = next;
  running->pid = e->pid;
  running->priority = e->priority;
  if (prev == ST_NO_ROW) {
    m->ftrace.switches_skipped++;
    return;
  }
  st_string state = state_of(m, e->size);
  st_sched_end(&m->sched, cpu, e->ts, state);
  st_cpu_get(&m->machine->cpus, cpu);
  st_raw_compact_switch(m, cpu, e, &last);
  if (is_early)
    return;
  st_sched_begin(&m->sched, cpu, e->ts, next, e->priority);
  st_sched_switch(&m->sched, cpu, e->ts, prev, state, next);
}

static void parse_compact_waking(struct st_importer* m, uint32_t cpu,
                                 const struct st_event* e, bool is_early) {
  uint32_t waker = st_sched_running(&m->sched, cpu)->utid;
  if (waker == ST_NO_ROW) {
    m->ftrace.wakings_skipped++;
    return;
  }
  st_cpu_get(&m->machine->cpus, cpu);
  st_raw_compact_waking(m, cpu, e, waker);
  if (!is_early)
    st_sched_wake(&m->sched, e->ts, st_thread_seen(&m->processes, e->pid),
                  waker, (int32_t)e->size);
}

void st_parse_ftrace(struct st_importer* m, const struct st_queue* queue,
                     const struct st_event* e) {
  set_start(m);
  if (e->ts < m->ftrace.drop_before) {
    m->ftrace.before_start++;
    return;
  }
  bool is_early = e->ts < m->ftrace.drop_softly_before;
  struct parsed p = {.ts = e->ts, .cpu = queue->cpu};
  switch (queue->kind) {
    case ST_QUEUE_SWITCH:
      parse_compact_switch(m, queue->cpu, e, is_early);
      break;
    case ST_QUEUE_WAKING:
      parse_compact_waking(m, queue->cpu, e, is_early);
      break;
    default:
      p.generation = e->generation;
      parse_event(m, &p, e);
  }
}
