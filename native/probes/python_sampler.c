#include "probes/python_sampler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/wire.h"
#include "probes/line_table.h"
#include "probes/python_threads.h"

enum {
  /* The list of threads is read again after this time. */
  LIST_PERIOD_NS = 50 * 1000 * 1000,
  /* The time from the start of a run until it ends because of new frames. */
  NEW_FRAMES_NS = 5 * 1000 * 1000,
  /* The number of attempts to read the stack of a thread, which runs meanwhile;
   * for a sample and for a dump. */
  SAMPLE_TRIES = 20,
  DUMP_TRIES = 100,
  MAX_LINE_TABLE = 1 << 20,
  MAX_PACKET = 64,
  PACKET_FIELD = 1,
  TIMESTAMP_FIELD = 8,
  SEQUENCE_FIELD = 10,
  PERF_SAMPLE_FIELD = 66,
  PID_FIELD = 2,
  TID_FIELD = 3,
  CALLSTACK_FIELD = 4,
};

struct st_python_sampler {
  struct st_python_target target;
  struct st_sampler_config config;
  struct st_process_memory memory;
  struct st_stack_table* table;
  struct st_sampler_stats stats;
  clockid_t cpu_clock;
  /* The CPU time of the process at the last tick, and the part of it for which
   * no sample was taken. */
  uint64_t cpu_ns, credit_ns;
  uint64_t listed_ns;
  struct st_python_threads threads;
  uint64_t last_us;
  size_t packet_bytes;
  uint8_t packets[ST_SAMPLER_MAX_PACKETS];
  struct st_sampled_frame frames[ST_STACK_MAX_DEPTH];
  uint32_t numbers[ST_STACK_MAX_DEPTH];
  uint8_t line_table[MAX_LINE_TABLE];
};

static uint64_t now_of(clockid_t clock) {
  struct timespec t;
  if (clock_gettime(clock, &t))
    return 0;
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct st_python_sampler* st_python_sampler_create(
    const struct st_python_target* target,
    const struct st_sampler_config* config) {
  struct st_python_sampler* s = calloc(1, sizeof *s);
  if (!s)
    return NULL;
  s->target = *target;
  s->config = *config;
  s->memory.pid = target->pid;
  s->table = st_stack_table_create();
  s->threads.all = calloc(ST_PYTHON_MAX_THREADS, sizeof *s->threads.all);
  s->threads.opens_files = config->mode == ST_SAMPLE_CPU;
  if (clock_getcpuclockid(target->pid, &s->cpu_clock))
    s->cpu_clock = CLOCK_MONOTONIC;
  if (!s->table || !s->threads.all) {
    st_python_sampler_destroy(s);
    return NULL;
  }
  s->cpu_ns = now_of(s->cpu_clock);
  s->last_us = config->start_us;
  return s;
}

void st_python_sampler_destroy(struct st_python_sampler* s) {
  st_python_threads_close(&s->threads);
  if (s->table)
    st_stack_table_destroy(s->table);
  free(s->threads.all);
  free(s);
}

static bool read_word(const struct st_python_sampler* s, uint64_t address,
                      uint64_t* word) {
  return st_process_read(s->target.pid, address, word, sizeof *word);
}

/* --- One sample ---------------------------------------------------------- */

static int32_t line_of(struct st_python_sampler* s, uint64_t code,
                       uint64_t instruction) {
  const struct st_python_layout* layout = &s->target.layout;
  uint64_t table, size;
  int32_t first_line;
  bool is_read = st_process_read(s->target.pid, code + layout->code_first_line,
                                 &first_line, sizeof first_line) &&
                 read_word(s, code + layout->code_line_table, &table) &&
                 read_word(s, table + layout->bytes_size, &size) &&
                 size <= MAX_LINE_TABLE &&
                 st_process_read(s->target.pid, table + layout->bytes_data,
                                 s->line_table, size);
  if (!is_read)
    return ST_NO_LINE;
  int64_t offset = (int64_t)(instruction - code - layout->code_start);
  int32_t line = st_line_of(s->line_table, size, first_line, offset / 2);
  /* A call that has executed no instruction yet is at the line of its `def`. */
  return offset < 0 ? first_line : line;
}

static uint32_t frame_number(struct st_python_sampler* s,
                             const struct st_sampled_frame* frame) {
  uint32_t known =
      st_stack_table_known(s->table, frame->code, frame->instruction);
  return known ? known
               : st_stack_table_add(
                     s->table, frame->code, frame->instruction, frame->code,
                     line_of(s, frame->code, frame->instruction));
}

/* Reads the stack of a thread into s->numbers, the outermost frame first.
 * Returns its depth, or a negative error if all attempts have failed. */
static int read_stack(struct st_python_sampler* s,
                      struct st_thread_place* place, int tries) {
  int depth = ST_STACK_TORN;
  while (depth == ST_STACK_TORN && tries-- > 0)
    depth =
        st_thread_sample(&s->target.layout.stack, &s->memory, place, s->frames);
  for (int i = 0; i < depth; i++) {
    uint32_t number = frame_number(s, &s->frames[i]);
    if (!number) {
      s->stats.no_room++;
      return ST_STACK_TOO_DEEP;
    }
    s->numbers[depth - 1 - i] = number;
  }
  return depth;
}

static void write_packet(struct st_python_sampler* s, uint64_t tid,
                         uint32_t stack) {
  uint8_t sample[MAX_PACKET], packet[MAX_PACKET];
  uint64_t now_us = now_of(CLOCK_BOOTTIME) / 1000;
  uint8_t* end = st_put_u64_field(sample, PID_FIELD, (uint64_t)s->target.pid);
  end = st_put_u64_field(end, TID_FIELD, tid);
  end = st_put_u64_field(end, CALLSTACK_FIELD, stack);
  uint8_t* at = st_put_u64_field(packet, TIMESTAMP_FIELD, now_us - s->last_us);
  if (s->config.sequence_id)
    at = st_put_u64_field(at, SEQUENCE_FIELD, s->config.sequence_id);
  at =
      st_put_bytes_field(at, PERF_SAMPLE_FIELD, sample, (size_t)(end - sample));
  end = st_put_bytes_field(s->packets + s->packet_bytes, PACKET_FIELD, packet,
                           (size_t)(at - packet));
  s->packet_bytes = (size_t)(end - s->packets);
  s->last_us = now_us;
  s->stats.samples++;
}

/* Takes a sample of a thread.  Returns false if the thread has ended. */
static bool sample_thread(struct st_python_sampler* s,
                          struct st_python_thread* t) {
  int depth = read_stack(s, &t->place, SAMPLE_TRIES);
  if (depth == ST_THREAD_GONE)
    return false;
  s->stats.torn += depth == ST_STACK_TORN;
  if (depth <= 0)
    return true;
  uint32_t stack = st_stack_table_stack(s->table, s->numbers, (uint32_t)depth);
  if (!stack) {
    s->stats.no_room++;
    return true;
  }
  st_stack_table_hit(s->table, stack);
  write_packet(s, t->place.native_id, stack);
  return true;
}

/* --- One tick ------------------------------------------------------------ */

/* Adds the CPU time since the last tick to the credit.  Returns whether the
 * credit is at least one period, so that a sample is due. */
static bool has_credit(struct st_python_sampler* s) {
  uint64_t cpu_ns = now_of(s->cpu_clock);
  s->credit_ns += cpu_ns > s->cpu_ns ? cpu_ns - s->cpu_ns : 0;
  s->cpu_ns = cpu_ns;
  return s->credit_ns >= s->config.period_ns;
}

/* Subtracts the periods of the taken samples from the credit; without a sample,
 * the credit becomes 0.  If more than two periods are left, only one is kept,
 * and the others are counted as late: a sample can't show what ran earlier. */
static void spend_credit(struct st_python_sampler* s, uint64_t samples) {
  uint64_t period = s->config.period_ns;
  uint64_t paid = samples * period;
  s->credit_ns = samples && s->credit_ns > paid ? s->credit_ns - paid : 0;
  if (s->credit_ns > 2 * period) {
    s->stats.late += s->credit_ns / period - 1;
    s->credit_ns = period;
  }
}

static bool sample_running(struct st_python_sampler* s) {
  if (!has_credit(s))
    return true;
  bool all_are_there = true;
  bool is_alone = s->threads.count == 1 && !s->threads.has_others;
  uint64_t samples = 0;
  for (int i = 0; i < s->threads.count; i++) {
    struct st_python_thread* t = &s->threads.all[i];
    if (!is_alone && !st_python_thread_runs(t))
      continue;
    all_are_there &= sample_thread(s, t);
    samples++;
  }
  spend_credit(s, samples);
  return all_are_there;
}

/* Returns the address of the thread state that holds the GIL; 0 if unknown. */
static uint64_t gil_holder(const struct st_python_sampler* s) {
  uint64_t holder = 0;
  int32_t locked = 0;
  bool is_known = s->target.gil_holder &&
                  read_word(s, s->target.gil_holder, &holder) &&
                  st_process_read(s->target.pid, s->target.gil_locked, &locked,
                                  sizeof locked);
  return is_known && locked == 1 ? holder : 0;
}

static bool sample_all(struct st_python_sampler* s) {
  bool all_are_there = true;
  uint64_t holder = s->config.mode == ST_SAMPLE_GIL ? gil_holder(s) : 0;
  for (int i = 0; i < s->threads.count; i++) {
    struct st_python_thread* t = &s->threads.all[i];
    if (s->config.mode == ST_SAMPLE_WALL || t->place.state == holder)
      all_are_there &= sample_thread(s, t);
  }
  return all_are_there;
}

/* Takes the samples of one tick.  Returns false if the process has ended. */
static bool tick(struct st_python_sampler* s) {
  uint64_t now = now_of(CLOCK_MONOTONIC);
  if (now - s->listed_ns >= LIST_PERIOD_NS) {
    if (!st_python_threads_list(&s->threads, &s->target))
      return false;
    s->listed_ns = now;
  }
  s->stats.ticks++;
  bool all_are_there =
      s->config.mode == ST_SAMPLE_CPU ? sample_running(s) : sample_all(s);
  if (!all_are_there)
    s->listed_ns = 0;
  return true;
}

static void sleep_until(uint64_t ns) {
  struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u),
                       .tv_nsec = (long)(ns % 1000000000u)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {
  }
}

enum st_run_result st_python_sampler_run(struct st_python_sampler* s,
                                         uint64_t duration_ns) {
  uint64_t period = s->config.period_ns;
  uint64_t next = now_of(CLOCK_MONOTONIC), end = next + duration_ns;
  uint64_t report = next + NEW_FRAMES_NS;
  uint32_t known = st_stack_table_frame_count(s->table);
  size_t room = (size_t)MAX_PACKET * ST_PYTHON_MAX_THREADS;
  while (next < end) {
    if (s->packet_bytes + room > sizeof s->packets)
      return ST_RUN_FULL;
    if (!tick(s))
      return ST_RUN_GONE;
    uint64_t now = now_of(CLOCK_MONOTONIC);
    uint64_t missed = now > next ? (now - next) / period : 0;
    if (s->config.mode != ST_SAMPLE_CPU)
      s->stats.late += missed;
    next += (missed + 1) * period;
    if (now >= report && st_stack_table_frame_count(s->table) > known)
      return ST_RUN_NEW_FRAMES;
    sleep_until(next < end ? next : end);
  }
  return ST_RUN_TIME_IS_UP;
}

/* --- Results ------------------------------------------------------------- */

bool st_python_sampler_dump(struct st_python_sampler* s, st_visit_stack visit,
                            void* self) {
  if (!st_python_threads_list(&s->threads, &s->target))
    return false;
  uint64_t holder = gil_holder(s);
  for (int i = 0; i < s->threads.count; i++) {
    struct st_thread_place* place = &s->threads.all[i].place;
    int depth = read_stack(s, place, DUMP_TRIES);
    struct st_thread_stack stack = {place->state, place->native_id, depth,
                                    place->state == holder, s->numbers};
    if (depth != ST_THREAD_GONE && !visit(self, &stack))
      return false;
  }
  return true;
}

const uint8_t* st_python_sampler_take(struct st_python_sampler* s,
                                      size_t* size) {
  *size = s->packet_bytes;
  s->packet_bytes = 0;
  return s->packets;
}

struct st_stack_table* st_python_sampler_table(struct st_python_sampler* s) {
  return s->table;
}

struct st_sampler_stats st_python_sampler_stats(
    const struct st_python_sampler* s) {
  return s->stats;
}
