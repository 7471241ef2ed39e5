/* Parses the events of kernels other than Linux: states and names of threads,
 * the process tree, the frequencies of CPUs.
 *
 * An event has the new state of one thread.  So a switch on a CPU consists of
 * two events, in any order: the new thread runs, the old one has stopped.  If
 * the new one comes first, the state of the old one is unknown until its own
 * event of the same time:
 *
 *   a runs ─> b runs, a: ? ─> a sleeps     sched_slice of a: end_state S
 */
#include <string.h>

#include "core/fields.h"
#include "importer.h"

enum {
  STATE_EVENT_CPU = 1,
  STATE_EVENT_COMM = 2,
  STATE_EVENT_TID = 3,
  STATE_EVENT_STATE = 4,
  STATE_EVENT_PRIORITY = 5,
  RENAME_TID = 1,
  RENAME_COMM = 2,
  PROCESS_PID = 1,
  PROCESS_PARENT = 2,
  PROCESS_CMDLINE = 3,
  THREAD_TID = 1,
  THREAD_PID = 2,
  THREAD_COMM = 3,
  THREAD_IS_MAIN = 4,
  FREQUENCY_CPU = 1,
  FREQUENCY_HZ = 2,
  FIELDS = 6,
};

enum { UNKNOWN, CREATED, RUNNABLE, RUNNING, DEAD = 7, DESTROYED };
static const char* const kStates[] = {[CREATED] = "Created",
                                      [RUNNABLE] = "R",
                                      [RUNNING] = "Running",
                                      [4] = "S",
                                      [5] = "D",
                                      [6] = "T",
                                      [DEAD] = "Z",
                                      [DESTROYED] = "X"};

/* A message's fields, by number. */
struct message {
  struct st_field fields[FIELDS];
};

static struct message decode(const uint8_t* data, size_t size) {
  struct message m = {0};
  struct st_decoder d;
  struct st_field f;
  st_decoder_init(&d, data, size);
  while (st_decoder_next(&d, &f)) {
    if (f.number < FIELDS)
      m.fields[f.number] = f;
  }
  return m;
}

static st_string text_of(struct st_importer* m, struct st_field f) {
  return f.data ? st_string_add(&m->storage.strings, f.data, f.size) : 0;
}

static void count(struct st_importer* m, const char* stat) {
  st_set_stat(m, stat, ST_NO_INDEX, "error", "analysis",
              st_get_stat(m, stat, ST_NO_INDEX) + 1);
}

/* Returns whether the state of the thread's last event is `state`. */
static bool was(struct st_importer* m, uint32_t utid, uint32_t state) {
  return utid != ST_NO_ROW && st_sched_last(&m->sched, utid) ==
                                  st_intern(&m->storage, kStates[state]);
}

static uint32_t named(struct st_importer* m, uint32_t utid, st_string name) {
  st_thread_set_name(&m->processes, utid, name, ST_NAME_FTRACE);
  return utid;
}

/* Returns the thread of an event; ST_NO_ROW if the event is dropped. */
static uint32_t thread_of(struct st_importer* m, int64_t ts, int64_t tid,
                          st_string name, uint32_t state) {
  struct st_processes* p = &m->processes;
  uint32_t utid = st_thread_find(p, tid);
  if (state == DESTROYED)
    return utid;
  bool invalid = (state == CREATED && utid != ST_NO_ROW) ||
                 (state == DEAD && was(m, utid, DESTROYED)) ||
                 (state == RUNNING && was(m, utid, RUNNING));
  if (invalid)
    count(m, "generic_task_state_invalid_order");
  else if (state == CREATED)
    utid = named(m, st_thread_start(p, tid, ts), name);
  else if (state != DEAD || utid == ST_NO_ROW)
    utid = named(m, st_thread_seen(p, tid), name);
  if (state == DEAD)
    st_thread_end(p, tid, ts);
  return invalid ? ST_NO_ROW : utid;
}

/* A thread begins to run on a CPU.  The state of the one before is unknown. */
static void run(struct st_importer* m, uint32_t cpu, int64_t ts, uint32_t utid,
                int32_t priority) {
  struct st_running* running = st_sched_running(&m->sched, cpu);
  if (running->slice != ST_NO_ROW) {
    st_sched_end(&m->sched, cpu, ts, 0);
    *st_map_at(&m->unknown_ends, running->utid) = running->slice + 1;
    st_sched_set_state(&m->sched, running->utid, ts, 0, ST_NO_ROW);
  }
  st_sched_begin(&m->sched, cpu, ts, utid, priority);
  st_sched_running(&m->sched, cpu)->utid = utid;
}

/* A thread has stopped running at ts.  Returns false if it had already stopped,
 * and only its state was unknown. */
static bool stop(struct st_importer* m, uint32_t cpu, int64_t ts, uint32_t utid,
                 st_string state) {
  struct st_running* running = st_sched_running(&m->sched, cpu);
  if (running->slice != ST_NO_ROW && running->utid == utid) {
    st_sched_end(&m->sched, cpu, ts, state);
    running->slice = ST_NO_ROW;
    return true;
  }
  uint32_t* row = st_map_at(&m->unknown_ends, utid);
  struct st_table* t = &m->storage.tables[ST_SCHED_TABLE];
  if (!*row || st_table_get(t, *row - 1, ST_SCHED_ts).i +
                       st_table_get(t, *row - 1, ST_SCHED_dur).i !=
                   ts)
    return true;
  st_table_set(t, *row - 1, ST_SCHED_end_state, st_text(state));
  *row = 0;
  return false;
}

static void parse_state(struct st_importer* m, int64_t ts,
                        const struct message* event) {
  uint32_t cpu = (uint32_t)event->fields[STATE_EVENT_CPU].value;
  uint64_t number = event->fields[STATE_EVENT_STATE].value;
  if (number == UNKNOWN || number > DESTROYED || cpu >= ST_MAX_CPUS) {
    m->ftrace.invalid_states++;
    return;
  }
  uint32_t utid =
      thread_of(m, ts, (int64_t)event->fields[STATE_EVENT_TID].value,
                text_of(m, event->fields[STATE_EVENT_COMM]), (uint32_t)number);
  if (utid == ST_NO_ROW)
    return;
  st_string state = st_intern(&m->storage, kStates[number]);
  if (number == RUNNING)
    run(m, cpu, ts, utid, (int32_t)event->fields[STATE_EVENT_PRIORITY].value);
  else if (!stop(m, cpu, ts, utid, state)) {
    st_sched_correct_state(&m->sched, utid, state);
    return;
  }
  st_sched_set_state(&m->sched, utid, ts, state,
                     number == RUNNING ? cpu : ST_NO_ROW);
}

static void parse_rename(struct st_importer* m, const struct message* event) {
  st_string name = text_of(m, event->fields[RENAME_COMM]);
  uint32_t utid = named(
      m,
      st_thread_seen(&m->processes, (int64_t)event->fields[RENAME_TID].value),
      name);
  const struct st_thread* t = &m->processes.threads.data[utid];
  if (t->upid != ST_NO_ROW &&
      m->processes.processes.data[t->upid].pid == t->tid)
    st_process_set_name(&m->processes, t->upid, name, true);
}

static void parse_process(struct st_importer* m, struct st_field process) {
  struct message p = decode(process.data, process.size);
  struct st_field cmdline = p.fields[PROCESS_CMDLINE];
  if (!cmdline.data)
    return;
  struct st_table* t = &m->storage.tables[ST_PROCESS_TABLE];
  uint32_t parent =
      st_process_seen(&m->processes, (int64_t)p.fields[PROCESS_PARENT].value);
  uint32_t upid =
      st_process_seen(&m->processes, (int64_t)p.fields[PROCESS_PID].value);
  st_table_set(t, upid, ST_PROCESS_parent_upid, st_int(parent));
  st_table_set(t, upid, ST_PROCESS_cmdline, st_text(text_of(m, cmdline)));
  const uint8_t* space = memchr(cmdline.data, ' ', cmdline.size);
  if (space)
    cmdline.size = (size_t)(space - cmdline.data);
  st_process_set_name(&m->processes, upid, text_of(m, cmdline), true);
}

static void parse_thread(struct st_importer* m, struct st_field thread) {
  struct message t = decode(thread.data, thread.size);
  uint32_t upid =
      st_process_seen(&m->processes, (int64_t)t.fields[THREAD_PID].value);
  uint32_t utid =
      st_thread_of(&m->processes, (int64_t)t.fields[THREAD_TID].value, upid);
  st_table_set(&m->storage.tables[ST_THREAD_TABLE], utid,
               ST_THREAD_is_main_thread,
               st_int(t.fields[THREAD_IS_MAIN].value != 0));
  st_thread_set_name(&m->processes, utid, text_of(m, t.fields[THREAD_COMM]),
                     ST_NAME_PROCESS_TREE);
}

static void parse_frequency(struct st_importer* m, int64_t ts,
                            const struct message* event) {
  struct st_fixed_track f = {
      .type = "cpu_frequency",
      .name = st_intern(&m->storage, "cpufreq"),
      .is_counter = true,
      .dimensions = {
          {"cpu", .number = (int32_t)event->fields[FREQUENCY_CPU].value}}};
  st_add_counter(m, ts, st_tracks_fixed_row(&m->tracks, &f),
                 (double)(int64_t)event->fields[FREQUENCY_HZ].value / 1000);
}

void st_parse_generic_kernel(struct st_importer* m, const struct st_event* e) {
  struct message event = decode(e->data, e->size);
  switch (e->field) {
    case ST_FIELD_TRACE_PACKET_GENERIC_KERNEL_TASK_STATE_EVENT:
      parse_state(m, e->ts, &event);
      break;
    case ST_FIELD_TRACE_PACKET_GENERIC_KERNEL_TASK_RENAME_EVENT:
      parse_rename(m, &event);
      break;
    case ST_FIELD_TRACE_PACKET_GENERIC_KERNEL_PROCESS_TREE:
      st_parse_tree(m, e, parse_process, parse_thread);
      break;
    default:
      parse_frequency(m, e->ts, &event);
  }
}
