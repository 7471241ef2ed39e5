#include "probes/python_sampler.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "probes/line_table.h"
#include "probes/python_threads.h"
#include "probes/sampler_budget.h"

enum {
  /* The list of threads is read again after this time at the latest. */
  LIST_PERIOD_NS = 50 * 1000 * 1000,
  /* If threads seem to be missing in it, it is read again after this time at
   * the earliest, and takes at most one part in so many of the time. */
  MIN_LIST_NS = 2 * 1000 * 1000,
  LIST_SHARE = 32,
  /* The time from the start of a run until it ends because of new frames. */
  NEW_FRAMES_NS = 5 * 1000 * 1000,
  /* The number of attempts to read the stack of a thread, which runs meanwhile;
   * for a sample and for a dump. */
  SAMPLE_TRIES = 100,
  DUMP_TRIES = 200,
  /* While the thread is stopped: the first one may find out where its stack is. */
  STOPPED_TRIES = 2,
  /* The CPU time of another process lags behind by at most this, while its
   * threads run: one tick of the kernel, which has 100 to 1,000 in a second. */
  CLOCK_LAG_NS = 10 * 1000 * 1000,
  /* The clock of the CPU time is read again after this time: while threads run,
   * it advances only at ticks of the kernel. */
  CLOCK_PERIOD_NS = 4 * 1000 * 1000,
  /* The process has used no CPU time for this long: it is quiet. */
  QUIET_NS = CLOCK_LAG_NS + CLOCK_PERIOD_NS,
  /* The largest number of periods that wait for a sample. */
  MAX_CREDIT = 100,
  /* The number of threads to look at if the process has used no CPU time. */
  QUIET_THREADS = 8,
  MAX_LINE_TABLE = 1 << 20,
  /* How much later the kernel may end a wait of a thread that stops others. */
  TIMER_SLACK_NS = 1000,
  /* How often a thread that has not stopped in time is looked at. */
  LATE_STOP_NS = 100 * 1000,
};

struct st_python_sampler {
  struct st_python_target target;
  struct st_sampler_config config; /* The period is the current one. */
  struct st_sampler_budget budget;
  uint64_t wanted_period_ns;
  /* The CPU time of all runs since the last review, and when that was. */
  uint64_t spent_ns, reviewed_ns;
  struct st_process_memory memory;
  struct st_stack_table* table;
  struct st_sampler_stats stats;
  clockid_t cpu_clock;
  /* The CPU time of the process at the last tick, and when it has increased. */
  uint64_t cpu_ns, busy_ns;
  uint64_t clock_read_ns;
  /* The CPU time for which samples may be taken. */
  int64_t credit_ns;
  /* When the next tick is due, also if it is in the next run; 0 at first. */
  uint64_t next_ns;
  uint64_t missed_ticks;
  uint64_t listed_ns;
  /* How soon after that the threads may be listed because some are missing. */
  uint64_t list_wait_ns;
  /* The CPU time since then: all, and the part for which there is no sample. */
  uint64_t used_ns;
  int64_t unexplained_ns;
  /* What the last tick has found.  The list may lack the holder of the GIL. */
  bool has_sampled, has_ended, lacks_holder;
  struct st_python_threads threads;
  struct st_native_sampler* native; /* NULL: no C calls are wanted. */
  uint64_t last_us;
  uint64_t random;
  size_t packet_bytes;
  uint8_t packets[ST_SAMPLER_MAX_PACKETS];
  /* The last stack: its frames, the innermost first, and their numbers, the
   * outermost first; `next` is for the frames of the next one. */
  struct st_sampled_frame last[ST_STACK_MAX_DEPTH], next[ST_STACK_MAX_DEPTH];
  int last_depth;
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
  s->wanted_period_ns = config->period_ns;
  s->stats.factor = 1;
  s->reviewed_ns = now_of(CLOCK_MONOTONIC);
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
  s->credit_ns = CLOCK_LAG_NS + (int64_t)config->period_ns;
  s->last_us = config->start_us;
  s->random = now_of(CLOCK_MONOTONIC) | 1;
  return s;
}

void st_python_sampler_destroy(struct st_python_sampler* s) {
  st_python_threads_close(&s->threads);
  if (s->table)
    st_stack_table_destroy(s->table);
  if (s->native)
    st_native_sampler_destroy(s->native);
  free(s->threads.all);
  free(s);
}

bool st_python_sampler_add_native(struct st_python_sampler* s, bool may_stop) {
  s->native = st_native_sampler_create(s->target.pid, may_stop);
  s->threads.opens_files = true;
  return s->native != NULL;
}

struct st_native_sampler* st_python_sampler_native(
    const struct st_python_sampler* s) {
  return s->native;
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
  if (known)
    return known;
  int32_t line = frame->kind == ST_FRAME_NATIVE
                     ? ST_NATIVE_LINE
                     : line_of(s, frame->code, frame->instruction);
  return st_stack_table_add(s->table, frame->code, frame->instruction,
                            frame->code, line);
}

/* Returns how many of the outermost frames are those of the last stack. */
static int frames_in_common(const struct st_python_sampler* s, int depth) {
  int same = 0;
  while (same < depth && same < s->last_depth &&
         !memcmp(&s->next[depth - 1 - same], &s->last[s->last_depth - 1 - same],
                 sizeof *s->next))
    same++;
  return same;
}

/* Gives numbers to the frames of the next stack, which becomes the last one.
 * Most samples have the outer frames of the last one, whose numbers are known.
 * Returns false if the table has no room. */
static bool number_frames(struct st_python_sampler* s, int depth) {
  int same = frames_in_common(s, depth);
  s->last_depth = 0;
  for (int i = same; i < depth; i++) {
    s->numbers[i] = frame_number(s, &s->next[depth - 1 - i]);
    if (!s->numbers[i])
      return false;
  }
  memcpy(s->last, s->next, (size_t)depth * sizeof *s->last);
  s->last_depth = depth;
  return true;
}

/* Reads the frames of a thread into s->next.  Returns their number, or a
 * negative error if all attempts have failed. */
static int read_frames(struct st_python_sampler* s, struct st_python_thread* t,
                       int tries) {
  int depth = ST_STACK_TORN;
  while (depth == ST_STACK_TORN && tries-- > 0)
    depth = st_thread_sample(&s->target.layout.stack, &s->memory, &t->place,
                             s->next);
  return depth;
}

/* Does the same, with C calls if they are wanted.  A thread that was stopped
 * while it changed its stack is read again when it runs. */
static int read_mixed(struct st_python_sampler* s, struct st_python_thread* t,
                      int tries) {
  if (!s->native || !st_native_sampler_begin(s->native, t))
    return read_frames(s, t, tries);
  int depth = read_frames(s, t, STOPPED_TRIES);
  bool is_valid = st_native_sampler_end(s->native, t);
  if (depth == ST_STACK_TORN)
    return read_frames(s, t, tries);
  return is_valid && depth > 0
             ? st_native_sampler_mix(s->native, s->next, depth)
             : depth;
}

/* Reads the stack of a thread into s->numbers, the outermost frame first.
 * Returns its depth, or a negative error. */
static int read_stack(struct st_python_sampler* s, struct st_python_thread* t,
                      int tries) {
  int depth = read_mixed(s, t, tries);
  if (depth > 0 && !number_frames(s, depth)) {
    s->stats.no_room++;
    return ST_STACK_TOO_DEEP;
  }
  return depth;
}

static void write_packet(struct st_python_sampler* s, uint64_t tid,
                         uint32_t stack) {
  uint64_t now_us = now_of(CLOCK_BOOTTIME) / 1000;
  struct st_sample sample = {.form = s->config.form,
                             .delta_us = now_us - s->last_us,
                             .sequence_id = s->config.sequence_id,
                             .pid = (uint32_t)s->target.pid,
                             .tid = (uint32_t)tid,
                             .callstack = stack,
                             .weight_ns = s->config.period_ns};
  uint8_t* end = st_put_sample_packet(s->packets + s->packet_bytes, &sample);
  s->packet_bytes = (size_t)(end - s->packets);
  s->last_us = now_us;
  s->stats.samples++;
}

/* Adds a sample of a thread, whose stack was read.  Returns false if the thread
 * has ended. */
static bool add_sample(struct st_python_sampler* s,
                       const struct st_python_thread* t, int depth) {
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
  st_stack_table_hit(s->table, stack, (uint32_t)s->stats.factor);
  s->stats.cut += t->place.is_cut;
  write_packet(s, t->place.native_id, stack);
  return true;
}

/* --- One tick ------------------------------------------------------------ */

/* Adds to the credit.  What is more than the largest one is counted: no known
 * thread was found running meanwhile. */
static void give_credit(struct st_python_sampler* s, uint64_t ns) {
  int64_t period = (int64_t)s->config.period_ns;
  s->credit_ns += (int64_t)ns;
  s->unexplained_ns += (int64_t)ns;
  int64_t excess = s->credit_ns - CLOCK_LAG_NS - MAX_CREDIT * period;
  int64_t unseen = excess > 0 ? excess / period : 0;
  s->stats.unseen += (uint64_t)unseen;
  s->credit_ns -= unseen * period;
}

static void use_credit(struct st_python_sampler* s) {
  s->credit_ns -= (int64_t)s->config.period_ns;
  s->unexplained_ns -= (int64_t)s->config.period_ns;
  s->has_sampled = true;
}

/* Adds the CPU time since the last call to the credit.  The part for which the
 * sampler came too late is counted: a sample can't show what ran earlier. */
static void add_credit(struct st_python_sampler* s, uint64_t now) {
  uint64_t period = s->config.period_ns;
  if (now - s->clock_read_ns < CLOCK_PERIOD_NS)
    return;
  s->clock_read_ns = now;
  uint64_t cpu_ns = now_of(s->cpu_clock);
  uint64_t used = cpu_ns > s->cpu_ns ? cpu_ns - s->cpu_ns : 0;
  uint64_t late = used / period;
  if (late > s->missed_ticks)
    late = s->missed_ticks;
  s->stats.late += late;
  s->missed_ticks = 0;
  s->cpu_ns = cpu_ns;
  if (used)
    s->busy_ns = now;
  s->used_ns += used;
  give_credit(s, used - late * period);
}

/* Returns whether a thread runs, or waits for a CPU. */
static bool runs(struct st_python_sampler* s, struct st_python_thread* t) {
  bool is_alone = s->threads.count == 1 && !s->threads.has_others;
  t->ran = t->syscall_fd < 0 ? is_alone : st_python_thread_runs(t);
  s->has_ended |= t->has_ended;
  return t->ran;
}

/* Samples a thread if it runs.  One that ran before is read first: if its stack
 * changes meanwhile, it runs, and the kernel need not be asked.  Returns false
 * if the thread has ended. */
static bool sample_if_running(struct st_python_sampler* s,
                              struct st_python_thread* t) {
  bool asks_first = !t->ran || s->native;
  if (asks_first && !runs(s, t))
    return true;
  int depth = read_stack(s, t, SAMPLE_TRIES);
  if (!asks_first && !t->place.has_moved && !runs(s, t))
    return depth != ST_THREAD_GONE;
  use_credit(s);
  return add_sample(s, t, depth);
}

/* Samples the threads that run, as long as there is credit: a thread that waits
 * for a CPU counts as one that runs. */
static bool sample_running(struct st_python_sampler* s, uint64_t now) {
  add_credit(s, now);
  bool all_are_there = true, is_quiet = now - s->busy_ns > QUIET_NS;
  int count = s->threads.count;
  int looks = is_quiet && count > QUIET_THREADS ? QUIET_THREADS : count;
  uint64_t first = s->stats.ticks * (uint64_t)looks;
  for (int i = 0; i < looks; i++) {
    struct st_python_thread* t =
        &s->threads.all[(first + (uint64_t)i) % (uint64_t)count];
    if (s->credit_ns >= (int64_t)s->config.period_ns)
      all_are_there &= sample_if_running(s, t);
  }
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
    if (s->config.mode == ST_SAMPLE_WALL || t->place.state == holder) {
      all_are_there &= add_sample(s, t, read_stack(s, t, SAMPLE_TRIES));
      s->has_sampled = true;
    }
  }
  s->lacks_holder = holder && !s->has_sampled;
  return all_are_there;
}

/* Returns whether threads that run seem to be missing in the list: new ones. */
static bool lacks_threads(const struct st_python_sampler* s) {
  if (s->config.mode != ST_SAMPLE_CPU)
    return s->lacks_holder;
  int64_t period = (int64_t)s->config.period_ns;
  bool is_likely =
      s->threads.has_changed || s->has_ended || s->unexplained_ns >= period;
  return is_likely && !s->has_sampled && s->credit_ns >= period;
}

/* Chooses how soon the threads may be listed again.  In a process whose threads
 * stay the same, other things are the reason why CPU time is not explained. */
static uint64_t next_list_wait(const struct st_python_sampler* s, uint64_t now,
                               uint64_t spent_ns) {
  bool was_idle =
      now - s->listed_ns >= LIST_PERIOD_NS && s->used_ns < s->config.period_ns;
  uint64_t wait = 2 * s->list_wait_ns;
  if (s->threads.has_changed || was_idle)
    wait = MIN_LIST_NS;
  if (wait < LIST_SHARE * spent_ns)
    wait = LIST_SHARE * spent_ns;
  return wait < LIST_PERIOD_NS ? wait : LIST_PERIOD_NS;
}

static bool list_threads(struct st_python_sampler* s, uint64_t now) {
  uint64_t before = now_of(CLOCK_THREAD_CPUTIME_ID);
  if (!st_python_threads_list(&s->threads, &s->target))
    return false;
  s->list_wait_ns =
      next_list_wait(s, now, now_of(CLOCK_THREAD_CPUTIME_ID) - before);
  s->listed_ns = now;
  s->used_ns = 0;
  s->unexplained_ns = 0;
  return true;
}

static void sample_threads(struct st_python_sampler* s, uint64_t now) {
  s->has_sampled = s->has_ended = false;
  bool all_are_there =
      s->config.mode == ST_SAMPLE_CPU ? sample_running(s, now) : sample_all(s);
  if (!all_are_there)
    s->listed_ns = 0;
}

/* Takes the samples of the tick at `now`.  Returns false if the process has
 * ended. */
static bool tick(struct st_python_sampler* s, uint64_t now) {
  if (now - s->listed_ns >= LIST_PERIOD_NS && !list_threads(s, now))
    return false;
  s->stats.ticks++;
  sample_threads(s, now);
  if (now - s->listed_ns < s->list_wait_ns || !lacks_threads(s))
    return true;
  if (!list_threads(s, now))
    return false;
  sample_threads(s, now);
  return true;
}

static void sleep_until(uint64_t ns) {
  struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u),
                       .tv_nsec = (long)(ns % 1000000000u)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {
  }
}

/* Sleeps until the next tick.  A thread that has not stopped in time may do so
 * meanwhile: it is released. */
static void wait_for_tick(struct st_python_sampler* s, uint64_t ns) {
  uint64_t now = s->native ? now_of(CLOCK_MONOTONIC) : ns;
  while (now < ns && !st_native_sampler_idle(s->native)) {
    sleep_until(now + LATE_STOP_NS < ns ? now + LATE_STOP_NS : ns);
    now = now_of(CLOCK_MONOTONIC);
  }
  sleep_until(ns);
}

/* Returns a random part of a period, in ns (xorshift, Marsaglia 2003). */
static uint64_t random_part(struct st_python_sampler* s) {
  s->random ^= s->random << 13;
  s->random ^= s->random >> 7;
  s->random ^= s->random << 17;
  return s->random % s->config.period_ns;
}

/* Counts the ticks that have passed since the next one was due.  Returns when
 * the first one is due that has not passed. */
static uint64_t skip_missed(struct st_python_sampler* s, uint64_t next,
                            uint64_t now) {
  uint64_t period = s->config.period_ns;
  uint64_t missed = now > next ? (now - next) / period : 0;
  if (s->config.mode == ST_SAMPLE_CPU)
    s->missed_ticks += missed;
  else
    s->stats.late += missed;
  return next + missed * period;
}

static enum st_run_result run_ticks(struct st_python_sampler* s,
                                    uint64_t duration_ns) {
  uint64_t now = now_of(CLOCK_MONOTONIC), end = now + duration_ns;
  uint64_t report = now + NEW_FRAMES_NS;
  uint32_t known = st_stack_table_frame_count(s->table);
  size_t room = (size_t)ST_SAMPLE_PACKET_BYTES * ST_PYTHON_MAX_THREADS;
  if (!s->next_ns)
    s->next_ns = now;
  s->next_ns = skip_missed(s, s->next_ns, now);
  while (s->next_ns < end) {
    if (s->packet_bytes + room > sizeof s->packets)
      return ST_RUN_FULL;
    wait_for_tick(s, s->next_ns + random_part(s));
    if (!tick(s, s->next_ns))
      return ST_RUN_GONE;
    now = now_of(CLOCK_MONOTONIC);
    s->next_ns = skip_missed(s, s->next_ns + s->config.period_ns, now);
    if (now >= report && st_stack_table_frame_count(s->table) > known)
      return ST_RUN_NEW_FRAMES;
  }
  wait_for_tick(s, end);
  return ST_RUN_TIME_IS_UP;
}

static enum st_run_result run(struct st_python_sampler* s,
                              uint64_t duration_ns) {
  uint64_t before = now_of(CLOCK_THREAD_CPUTIME_ID);
  enum st_run_result result = run_ticks(s, duration_ns);
  s->spent_ns += now_of(CLOCK_THREAD_CPUTIME_ID) - before;
  return result;
}

struct run {
  struct st_python_sampler* sampler;
  uint64_t duration_ns;
  enum st_run_result result;
};

static void* run_on_thread(void* self) {
  struct run* r = self;
  prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
  st_native_sampler_enter(r->sampler->native);
  r->result = run(r->sampler, r->duration_ns);
  return NULL;
}

/* The end of the thread releases a thread of the process that is still traced. */
static enum st_run_result run_native(struct st_python_sampler* s,
                                     uint64_t duration_ns) {
  struct run r = {s, duration_ns, ST_RUN_TIME_IS_UP};
  pthread_t thread;
  if (pthread_create(&thread, NULL, run_on_thread, &r))
    sleep_until(now_of(CLOCK_MONOTONIC) + duration_ns);
  else
    pthread_join(thread, NULL);
  return r.result;
}

enum st_run_result st_python_sampler_run(struct st_python_sampler* s,
                                         uint64_t duration_ns) {
  return s->native ? run_native(s, duration_ns) : run(s, duration_ns);
}

/* --- Results ------------------------------------------------------------- */

bool st_python_sampler_dump(struct st_python_sampler* s, st_visit_stack visit,
                            void* self) {
  if (!st_python_threads_list(&s->threads, &s->target))
    return false;
  uint64_t holder = gil_holder(s);
  for (int i = 0; i < s->threads.count; i++) {
    struct st_thread_place* place = &s->threads.all[i].place;
    int depth = read_stack(s, &s->threads.all[i], DUMP_TRIES);
    struct st_thread_stack stack = {place->state, place->native_id, depth,
                                    place->state == holder, s->numbers};
    if (depth != ST_THREAD_GONE && !visit(self, &stack))
      return false;
  }
  return true;
}

void st_python_sampler_review(struct st_python_sampler* s, uint64_t elapsed_ns,
                              uint64_t cpu_ns) {
  st_sampler_budget_review(&s->budget, elapsed_ns, cpu_ns);
  s->stats.factor = (uint64_t)1 << s->budget.doublings;
  s->config.period_ns = s->wanted_period_ns << s->budget.doublings;
}

const uint8_t* st_python_sampler_take(struct st_python_sampler* s,
                                      size_t* size) {
  uint64_t now = now_of(CLOCK_MONOTONIC);
  st_python_sampler_review(s, now - s->reviewed_ns, s->spent_ns);
  s->reviewed_ns = now;
  s->spent_ns = 0;
  *size = s->packet_bytes;
  s->packet_bytes = 0;
  return s->packets;
}

void st_python_sampler_clear(struct st_python_sampler* s) {
  st_stack_table_clear(s->table);
  s->last_depth = 0;
}

struct st_stack_table* st_python_sampler_table(struct st_python_sampler* s) {
  return s->table;
}

struct st_sampler_stats st_python_sampler_stats(
    const struct st_python_sampler* s) {
  return s->stats;
}
