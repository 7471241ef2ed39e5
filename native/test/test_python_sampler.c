/* Tests of the Python sampler.  The target is this process itself: it has
 * structures like those of CPython 3.12 in its memory. */
#include "probes/python_sampler.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"
#include "core/wire.h"
#include "probes/blocked_thread.h"
#include "probes/sampler_budget.h"
#include "probes/thread_sample.h"
#include "random.h"

enum {
  THREAD_NEXT = 8,
  THREAD_FRAME = 56,
  THREAD_ID = 136,
  THREAD_NATIVE_ID = 144,
  THREAD_CHUNK = 232,
  FRAME_PREVIOUS = 8,
  FRAME_INSTRUCTION = 56,
  FRAME_OWNER = 70,
  CODE_FIRST_LINE = 68,
  CODE_LINE_TABLE = 136,
  CODE_START = 192,
  BYTES_SIZE = 16,
  BYTES_DATA = 32,
  CHUNK_SIZE = 16 << 10,
  PERIOD_NS = 1000000,
};

/* The memory of a Python thread. */
struct fake_thread {
  _Alignas(8) uint8_t state[ST_THREAD_STATE_BYTES];
  uint64_t control[2];
  _Alignas(8) uint8_t chunk[CHUNK_SIZE];
};

struct fake_code {
  _Alignas(8) uint8_t bytes[256];
  _Alignas(8) uint8_t line_table[64];
};

static uint64_t head, gil_holder;
static int32_t gil_locked;
static struct fake_thread threads[2];
static struct fake_code codes[3];

static uint64_t address_of(const void* p) {
  return (uint64_t)(uintptr_t)p;
}

static void put(uint8_t* at, uint64_t word) {
  memcpy(at, &word, sizeof word);
}

/* Makes code whose units 0 to 7 are at lines first_line to first_line + 7. */
static void make_code(struct fake_code* code, int32_t first_line) {
  uint8_t* table = code->line_table;
  memset(code, 0, sizeof *code);
  memcpy(code->bytes + CODE_FIRST_LINE, &first_line, sizeof first_line);
  put(code->bytes + CODE_LINE_TABLE, address_of(table));
  put(table + BYTES_SIZE, 16);
  for (int unit = 0; unit < 8; unit++) {
    table[BYTES_DATA + 2 * unit] = 0x80 | 13 << 3;
    table[BYTES_DATA + 2 * unit + 1] = unit ? 1 << 1 : 0;
  }
}

static void make_thread(struct fake_thread* t, uint64_t next,
                        uint64_t native_id) {
  memset(t, 0, sizeof *t);
  put(t->state + THREAD_NEXT, next);
  put(t->state + THREAD_NATIVE_ID, native_id);
  put(t->state + THREAD_FRAME, address_of(t->control));
  put(t->state + THREAD_CHUNK, address_of(t->chunk));
  put(t->chunk + 8, CHUNK_SIZE);
}

static uint64_t frame_at(struct fake_thread* t, int depth) {
  return address_of(t->chunk) + 24 + (uint64_t)depth * 80;
}

/* Adds a frame at `depth`.  It executes the code unit `unit` of `code`. */
static void push(struct fake_thread* t, int depth, const struct fake_code* code,
                 int unit) {
  uint8_t* frame = t->chunk + 24 + depth * 80;
  put(frame, address_of(code));
  put(frame + FRAME_PREVIOUS, depth ? frame_at(t, depth - 1) : 0);
  put(frame + FRAME_INSTRUCTION,
      address_of(code) + CODE_START + 2 * (uint64_t)unit);
  frame[FRAME_OWNER] = 0;
  t->control[0] = frame_at(t, depth);
}

static struct st_python_target make_target(void) {
  struct st_python_target target = {
      .pid = getpid(),
      .layout = {.stack = {.thread_next = THREAD_NEXT,
                           .thread_id = THREAD_ID,
                           .thread_native_id = THREAD_NATIVE_ID,
                           .thread_frame = THREAD_FRAME,
                           .thread_chunk = THREAD_CHUNK,
                           .has_control_frame = true,
                           .frame_previous = FRAME_PREVIOUS,
                           .frame_owner = FRAME_OWNER,
                           .frame_instruction = FRAME_INSTRUCTION,
                           .first_foreign_owner = 3,
                           .last_owner = 3},
                 .code_first_line = CODE_FIRST_LINE,
                 .code_line_table = CODE_LINE_TABLE,
                 .code_start = CODE_START,
                 .bytes_size = BYTES_SIZE,
                 .bytes_data = BYTES_DATA},
      .heads = {address_of(&head)},
      .head_count = 1,
      .gil_holder = address_of(&gil_holder),
      .gil_locked = address_of(&gil_locked)};
  return target;
}

/* Makes two threads: the first executes main -> work, the second main ->
 * wait. */
static void set_up(void) {
  for (int i = 0; i < 3; i++)
    make_code(&codes[i], 100 * (i + 1));
  make_thread(&threads[0], address_of(&threads[1]), (uint64_t)getpid());
  make_thread(&threads[1], 0, 77);
  for (int i = 0; i < 2; i++) {
    push(&threads[i], 0, &codes[0], 2);
    push(&threads[i], 1, &codes[1 + i], 5);
  }
  head = address_of(&threads[0]);
  gil_holder = address_of(&threads[1]);
  gil_locked = 1;
}

static struct st_python_sampler* make_sampler(enum st_sample_mode mode) {
  struct st_python_target target = make_target();
  struct st_sampler_config config = {mode, PERIOD_NS, 9, 0, ST_PERF_SAMPLE};
  return st_python_sampler_create(&target, &config);
}

struct seen {
  int count, gil;
  int depth[8];
  uint64_t code[8];
  int32_t line[8];
  const struct st_stack_table* table;
};

/* Stores the depth of each stack, and its innermost frame. */
static bool see(void* self, const struct st_thread_stack* stack) {
  struct seen* seen = self;
  int i = seen->count++;
  seen->depth[i] = stack->depth;
  if (stack->holds_gil)
    seen->gil = i;
  if (stack->depth > 0) {
    uint32_t last = stack->frames[stack->depth - 1];
    seen->code[i] = st_stack_table_frame(seen->table, last).function;
    seen->line[i] = st_stack_table_frame(seen->table, last).line;
  }
  return true;
}

static bool dump(struct st_python_sampler* s, struct seen* seen) {
  *seen = (struct seen){.gil = -1, .table = st_python_sampler_table(s)};
  return st_python_sampler_dump(s, see, seen);
}

static void dump_has_all_threads(void) {
  set_up();
  struct seen seen;
  struct st_python_sampler* s = make_sampler(ST_SAMPLE_WALL);
  CHECK(dump(s, &seen));
  CHECK_EQ(seen.count, 2);
  CHECK_EQ(seen.gil, 1);
  for (int i = 0; i < 2; i++) {
    CHECK_EQ(seen.depth[i], 2);
    CHECK_EQ(seen.code[i], address_of(&codes[1 + i]));
    CHECK_EQ(seen.line[i], 100 * (i + 2) + 5);
  }
  st_python_sampler_destroy(s);
}

static void call_before_its_first_instruction_is_at_its_first_line(void) {
  set_up();
  push(&threads[0], 1, &codes[1], -1);
  struct seen seen;
  struct st_python_sampler* s = make_sampler(ST_SAMPLE_WALL);
  CHECK(dump(s, &seen));
  CHECK_EQ(seen.line[0], 200);
  st_python_sampler_destroy(s);
}

static void frames_outside_the_chunk_are_read(void) {
  set_up();
  _Alignas(8) static uint8_t generator[128];
  memset(generator, 0, sizeof generator);
  put(generator, address_of(&codes[2]));
  put(generator + FRAME_PREVIOUS, frame_at(&threads[0], 1));
  put(generator + FRAME_INSTRUCTION, address_of(&codes[2]) + CODE_START);
  generator[FRAME_OWNER] = 1;
  threads[0].control[0] = address_of(generator);
  struct seen seen;
  struct st_python_sampler* s = make_sampler(ST_SAMPLE_WALL);
  CHECK(dump(s, &seen));
  CHECK_EQ(seen.depth[0], 3);
  CHECK_EQ(seen.code[0], address_of(&codes[2]));
  st_python_sampler_destroy(s);
}

/* The first sample finds the frame, the second one fetches it with the rest. */
static void known_frames_outside_the_chunk_are_fetched_by_the_same_call(void) {
  set_up();
  _Alignas(8) static uint8_t generator[128];
  put(generator, address_of(&codes[2]));
  put(generator + FRAME_PREVIOUS, frame_at(&threads[0], 1));
  threads[0].control[0] = address_of(generator);
  struct st_python_target target = make_target();
  struct st_process_memory memory = {.pid = getpid()};
  struct st_thread_place place = {.state = address_of(&threads[0].state)};
  struct st_sampled_frame frames[ST_STACK_MAX_DEPTH];
  for (int i = 0; i < 2; i++) {
    CHECK_EQ(st_thread_sample(&target.layout.stack, &memory, &place, frames),
             3);
    CHECK_EQ(memory.part_count, 5 + i);
    CHECK_EQ(place.outside_count, 1);
    CHECK_EQ(place.outside[0], address_of(generator));
  }
  CHECK_EQ(memory.parts[0].start, address_of(generator));
}

static atomic_bool ends;

/* Changes a word that no frame has, which is a variable of the innermost call. */
static void* change_stack(void* self) {
  _Atomic uint64_t* word = self;
  while (!atomic_load(&ends))
    atomic_fetch_add(word, 1);
  return NULL;
}

static void sample_tells_whether_the_stack_changes_meanwhile(void) {
  set_up();
  struct st_python_target target = make_target();
  struct st_process_memory memory = {.pid = getpid()};
  struct st_thread_place place = {.state = address_of(&threads[0].state)};
  struct st_sampled_frame frames[ST_STACK_MAX_DEPTH];
  CHECK_EQ(st_thread_sample(&target.layout.stack, &memory, &place, frames), 2);
  CHECK(!place.has_moved);
  pthread_t thread;
  ends = false;
  CHECK(!pthread_create(&thread, NULL, change_stack, threads[0].chunk + 200));
  do
    CHECK_EQ(st_thread_sample(&target.layout.stack, &memory, &place, frames),
             2);
  while (!place.has_moved);
  ends = true;
  pthread_join(thread, NULL);
  CHECK_EQ(st_thread_sample(&target.layout.stack, &memory, &place, frames), 2);
  CHECK(!place.has_moved);
}

static void stack_that_differs_from_the_last_one_gets_its_own_frames(void) {
  set_up();
  struct seen seen;
  struct st_python_sampler* s = make_sampler(ST_SAMPLE_WALL);
  CHECK(dump(s, &seen));
  CHECK_EQ(st_stack_table_frame_count(seen.table), 3);
  push(&threads[0], 1, &codes[2], 5);
  push(&threads[1], 0, &codes[1], 6);
  push(&threads[1], 1, &codes[2], 5);
  CHECK(dump(s, &seen));
  CHECK_EQ(seen.code[0], address_of(&codes[2]));
  CHECK_EQ(seen.code[1], address_of(&codes[2]));
  CHECK_EQ(st_stack_table_frame_count(seen.table), 4);
  st_python_sampler_clear(s);
  CHECK(dump(s, &seen));
  CHECK_EQ(st_stack_table_frame_count(seen.table), 3);
  CHECK_EQ(seen.code[1], address_of(&codes[2]));
  st_python_sampler_destroy(s);
}

static void deep_stack_is_read_from_a_larger_window(void) {
  set_up();
  for (int depth = 2; depth < 150; depth++)
    push(&threads[0], depth, &codes[1], depth % 8);
  struct seen seen;
  struct st_python_sampler* s = make_sampler(ST_SAMPLE_WALL);
  for (int i = 0; i < 3; i++) {
    CHECK(dump(s, &seen));
    CHECK_EQ(seen.depth[0], 150);
  }
  st_python_sampler_destroy(s);
}

/* Returns the number of packets, and checks their fields. */
static int count_packets(struct st_python_sampler* s, uint64_t* last_tid) {
  size_t size;
  const uint8_t* at = st_python_sampler_take(s, &size);
  const uint8_t* end = at + size;
  int packets = 0;
  while (at < end) {
    CHECK_EQ(*at, 0x0A);
    size_t packet = at[1];
    CHECK(packet < 0x80);
    CHECK(at + 2 + packet <= end);
    const uint8_t* sample = memmem(at, 2 + packet, "\x92\x04", 2);
    CHECK(sample);
    const uint8_t* field = sample + 3; /* Varints come before the tid. */
    while (*field != 0x18)
      for (field++; *field++ & 0x80;) {
      }
    *last_tid = field[1];
    at += 2 + packet;
    packets++;
  }
  return packets;
}

static void each_tick_of_wall_time_samples_all_threads(void) {
  set_up();
  struct st_python_sampler* s = make_sampler(ST_SAMPLE_WALL);
  CHECK_EQ(st_python_sampler_run(s, 20 * PERIOD_NS), ST_RUN_NEW_FRAMES);
  CHECK_EQ(st_python_sampler_run(s, 20 * PERIOD_NS), ST_RUN_TIME_IS_UP);
  struct st_sampler_stats stats = st_python_sampler_stats(s);
  CHECK(stats.ticks > 0);
  CHECK_EQ(stats.samples, 2 * stats.ticks);
  CHECK_EQ(stats.torn + stats.no_room, 0);
  uint64_t tid;
  CHECK_EQ(count_packets(s, &tid), stats.samples);
  CHECK_EQ(st_stack_table_stack_count(st_python_sampler_table(s)), 2);
  CHECK_EQ(st_stack_table_hits(st_python_sampler_table(s), 1), stats.ticks);
  CHECK_EQ(count_packets(s, &tid), 0);
  st_python_sampler_destroy(s);
}

/* The samples have taken nine tenths of a second: the period is four times the
 * wanted one, and each sample counts as four. */
static void samples_beyond_the_budget_are_fewer_and_count_more(void) {
  set_up();
  struct st_python_sampler* s = make_sampler(ST_SAMPLE_WALL);
  const uint64_t second = 1000 * PERIOD_NS;
  CHECK_EQ(st_python_sampler_stats(s).factor, 1);
  st_python_sampler_review(s, second, second / 10 * 9);
  CHECK_EQ(st_python_sampler_stats(s).factor, 4);
  while (st_python_sampler_run(s, 40 * PERIOD_NS) != ST_RUN_TIME_IS_UP) {
  }
  struct st_sampler_stats stats = st_python_sampler_stats(s);
  CHECK(stats.ticks > 0);
  CHECK_EQ(st_stack_table_hits(st_python_sampler_table(s), 1), 4 * stats.ticks);
  for (int i = 0; i < 2 * ST_SAMPLER_CALM_REVIEWS; i++)
    st_python_sampler_review(s, second, 0);
  CHECK_EQ(st_python_sampler_stats(s).factor, 1);
  st_python_sampler_destroy(s);
}

static void mode_gil_samples_the_holder_of_the_gil(void) {
  set_up();
  struct st_python_sampler* s = make_sampler(ST_SAMPLE_GIL);
  CHECK_EQ(st_python_sampler_run(s, 10 * PERIOD_NS), ST_RUN_NEW_FRAMES);
  struct st_sampler_stats stats = st_python_sampler_stats(s);
  CHECK(stats.ticks > 0);
  CHECK_EQ(stats.samples, stats.ticks);
  uint64_t tid = 0;
  count_packets(s, &tid);
  CHECK_EQ(tid, 77);
  gil_locked = 0;
  CHECK_EQ(st_python_sampler_run(s, 10 * PERIOD_NS), ST_RUN_TIME_IS_UP);
  CHECK_EQ(st_python_sampler_stats(s).samples, stats.samples);
  st_python_sampler_destroy(s);
}

/* While run() sleeps, this process uses almost no CPU time. */
static void sleeping_process_has_few_samples_of_cpu_time(void) {
  set_up();
  struct st_python_sampler* s = make_sampler(ST_SAMPLE_CPU);
  while (st_python_sampler_run(s, 50 * PERIOD_NS) != ST_RUN_TIME_IS_UP) {
  }
  struct st_sampler_stats stats = st_python_sampler_stats(s);
  CHECK(stats.samples <= stats.ticks / 2);
  st_python_sampler_destroy(s);
}

static int pipe_ends[2];
static _Atomic uint64_t native_id;

/* Uses the CPU until it shall end, then waits for a byte. */
static void* run_and_wait(void* unused) {
  char byte;
  atomic_store(&native_id, (uint64_t)syscall(SYS_gettid));
  while (!atomic_load(&ends)) {
  }
  CHECK_EQ(read(pipe_ends[0], &byte, 1), 1);
  return unused;
}

static void thread_that_ran_before_is_not_sampled_while_it_waits(void) {
  if (access("/proc/self/syscall", R_OK))
    return; /* This kernel does not tell who waits. */
  const struct st_address_range none = {0};
  pthread_t thread;
  ends = false;
  CHECK(!pipe(pipe_ends));
  CHECK(!pthread_create(&thread, NULL, run_and_wait, NULL));
  while (!atomic_load(&native_id))
    sched_yield();
  set_up();
  put(threads[0].state + THREAD_NATIVE_ID, native_id);
  struct st_python_sampler* s = make_sampler(ST_SAMPLE_CPU);
  while (!st_python_sampler_stats(s).samples)
    st_python_sampler_run(s, PERIOD_NS);
  ends = true;
  while (!st_thread_is_blocked(native_id, none))
    sched_yield();
  uint64_t samples = st_python_sampler_stats(s).samples;
  st_python_sampler_run(s, 5 * PERIOD_NS);
  CHECK_EQ(st_python_sampler_stats(s).samples, samples);
  st_python_sampler_destroy(s);
  CHECK_EQ(write(pipe_ends[1], "x", 1), 1);
  pthread_join(thread, NULL);
}

/* Begins a thread that uses the CPU until it shall end. */
static pthread_t begin_busy_thread(void) {
  pthread_t thread;
  ends = false;
  native_id = 0;
  CHECK(!pipe(pipe_ends));
  CHECK(!pthread_create(&thread, NULL, run_and_wait, NULL));
  while (!atomic_load(&native_id))
    sched_yield();
  return thread;
}

static void end_busy_thread(pthread_t thread) {
  ends = true;
  CHECK_EQ(write(pipe_ends[1], "x", 1), 1);
  pthread_join(thread, NULL);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

/* Returns the number of samples of a thread that Python gets to know after the
 * list of threads was read, in a time in which it is not read again by itself. */
static uint64_t samples_of_new_thread(void) {
  set_up();
  threads[1] = threads[0];
  put(threads[1].state + THREAD_NEXT, 0);
  put(threads[1].state + THREAD_NATIVE_ID, native_id);
  put(threads[0].state + THREAD_NEXT, 0);
  put(threads[0].state + THREAD_NATIVE_ID, 77);
  struct st_python_sampler* s = make_sampler(ST_SAMPLE_CPU);
  st_python_sampler_run(s, 2 * PERIOD_NS);
  head = address_of(&threads[1]);
  st_python_sampler_run(s, 25 * PERIOD_NS);
  uint64_t samples = st_python_sampler_stats(s).samples;
  st_python_sampler_destroy(s);
  return samples;
}

/* On a busy machine, the busy thread may not run at once. */
static void new_thread_that_runs_is_sampled_at_once(void) {
  if (access("/proc/self/syscall", R_OK))
    return; /* This kernel does not tell who runs. */
  pthread_t thread = begin_busy_thread();
  uint64_t samples = 0;
  for (int tries = 0; tries < 40 && !samples; tries++)
    samples = samples_of_new_thread();
  CHECK(samples > 0);
  end_busy_thread(thread);
}

/* Runs the sampler until it has another sample. */
static bool gets_a_sample(struct st_python_sampler* s) {
  uint64_t before = st_python_sampler_stats(s).samples;
  for (int i = 0; i < 200 && st_python_sampler_stats(s).samples == before; i++)
    st_python_sampler_run(s, 5 * PERIOD_NS);
  return st_python_sampler_stats(s).samples > before;
}

/* A thread state may be at the address of one whose thread has ended. */
static void thread_with_the_memory_of_an_ended_one_is_sampled(void) {
  if (access("/proc/self/syscall", R_OK))
    return; /* This kernel does not tell who runs. */
  set_up();
  struct st_python_sampler* s = make_sampler(ST_SAMPLE_CPU);
  for (int i = 0; i < 2; i++) {
    pthread_t thread = begin_busy_thread();
    put(threads[0].state + THREAD_NATIVE_ID, native_id);
    CHECK(gets_a_sample(s));
    end_busy_thread(thread);
  }
  st_python_sampler_destroy(s);
}

static void cpu_time_of_unknown_threads_is_counted(void) {
  pthread_t thread = begin_busy_thread();
  set_up();
  put(threads[0].state + THREAD_NATIVE_ID, 78);
  struct st_python_sampler* s = make_sampler(ST_SAMPLE_CPU);
  for (int i = 0; i < 1000 && st_python_sampler_stats(s).unseen < 50; i++)
    st_python_sampler_run(s, 50 * PERIOD_NS);
  struct st_sampler_stats stats = st_python_sampler_stats(s);
  CHECK(stats.unseen >= 50);
  CHECK_EQ(stats.samples, 0);
  st_python_sampler_destroy(s);
  end_busy_thread(thread);
}

static void process_without_an_interpreter_is_reported_as_gone(void) {
  set_up();
  struct st_python_target target = make_target();
  void* page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  target.heads[0] = address_of(page);
  struct st_sampler_config config = {ST_SAMPLE_WALL, PERIOD_NS, 9, 0,
                                     ST_PERF_SAMPLE};
  struct st_python_sampler* s = st_python_sampler_create(&target, &config);
  struct seen seen;
  CHECK(!dump(s, &seen));
  CHECK_EQ(st_python_sampler_run(s, PERIOD_NS), ST_RUN_GONE);
  st_python_sampler_destroy(s);
  munmap(page, 4096);
}

/* The sampler must neither crash nor hang. */
static void random_structures_are_read_without_a_crash(void) {
  uint64_t random = 5;
  set_up();
  struct st_python_sampler* s = make_sampler(ST_SAMPLE_WALL);
  struct seen seen;
  for (int i = 0; i < 3000; i++) {
    set_up();
    uint8_t* all = i % 2 ? (uint8_t*)threads : (uint8_t*)codes;
    size_t size = i % 2 ? sizeof threads : sizeof codes;
    for (int j = 0; j < 5; j++) {
      size_t at = random_below(&random, i % 3 ? 600 : size - 8);
      uint64_t word = random_next(&random);
      put(all + at, i % 5 ? word : address_of(all) + word % size);
    }
    if (!dump(s, &seen))
      CHECK_EQ(seen.count, 0);
    if (i % 100 == 0)
      st_python_sampler_clear(s);
  }
  st_python_sampler_destroy(s);
}

int main(void) {
  if (!st_own_memory_works())
    return 0; /* Emulators lack process_vm_readv. */
  RUN(dump_has_all_threads);
  RUN(call_before_its_first_instruction_is_at_its_first_line);
  RUN(frames_outside_the_chunk_are_read);
  RUN(known_frames_outside_the_chunk_are_fetched_by_the_same_call);
  RUN(sample_tells_whether_the_stack_changes_meanwhile);
  RUN(stack_that_differs_from_the_last_one_gets_its_own_frames);
  RUN(deep_stack_is_read_from_a_larger_window);
  RUN(each_tick_of_wall_time_samples_all_threads);
  RUN(samples_beyond_the_budget_are_fewer_and_count_more);
  RUN(mode_gil_samples_the_holder_of_the_gil);
  RUN(sleeping_process_has_few_samples_of_cpu_time);
  RUN(thread_that_ran_before_is_not_sampled_while_it_waits);
  RUN(new_thread_that_runs_is_sampled_at_once);
  RUN(thread_with_the_memory_of_an_ended_one_is_sampled);
  RUN(cpu_time_of_unknown_threads_is_counted);
  RUN(process_without_an_interpreter_is_reported_as_gone);
  RUN(random_structures_are_read_without_a_crash);
  return 0;
}
