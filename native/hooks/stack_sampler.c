/* Longer than 600 lines: the state of the known threads is private to it. */
#include "hooks/stack_sampler.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/own_threads.h"
#include "core/thread_join.h"
#include "hooks/look_times.h"
#include "hooks/merging_thread.h"
#include "hooks/python_layout.h"
#include "hooks/sampled_times.h"
#include "hooks/sampler_totals.h"
#include "hooks/shown_calls.h"
#include "hooks/stack_samples.h"
#include "hooks/threshold_file.h"
#include "probes/own_thread_file.h"
#include "probes/sample_gaps.h"
#include "probes/waiting_thread.h"

enum {
  MAX_THREADS = 4096,
  BUCKETS = 256,
  /* More where only samples find calls. */
  SAMPLING_SHARE = ST_CALLS_ARE_REPORTED ? 50 : 20,
  /* The number of functions that each sampling round arms in turn, although
   * they were not found on a stack. */
  ARMED_IN_TURN = 1,
  /* How often a stack is read in one sample, if it is torn, or if the thread or
   * this one did not run all the time meanwhile; and how long a read may take. */
  MAX_READS = 3,
  LONG_READ_NS = 200000,
  NS = 1000000000,
  READY_PAUSE_NS = 10000000,
};

/* A thread, with its last stack sample. */
struct known_thread {
  struct known_thread* next;
  struct st_last_sample shared;
  uint64_t native_id;
  bool is_ours; /* Its times are not in the totals. */
  uint64_t cpu_ns, time;
  /* How much of its CPU time is in the totals.  `cpu_ns` is read after
   * `time`, perhaps long after: what it has more belongs to the next sample. */
  uint64_t counted_ns;
  /* The stack is that of `read_begin`, or of a moment between the two times if
   * the thread ran meanwhile. */
  uint64_t read_begin, read_end;
  /* How long the thread had waited for a CPU at `ready_at`; it is read at most
   * once in READY_PAUSE_NS.  `ready_at` is 0 before the first reading. */
  uint64_t ready_ns, ready_at;
  struct st_thread_times* times; /* NULL if it has none. */
  /* A wait that began since the last sample began after this time. */
  uint64_t wait_begin;
  /* The wait that the last sample has found ended before this time. */
  uint64_t wait_end;
  bool waits;
  /* The instruction in which the thread was last found blocked. */
  uint64_t blocked_at;
  /* The number of the last sampling round that found this thread. */
  uint64_t pass;
  /* The depth of the thread's stack; below 0 if the stack could not be read. */
  int depth;
  bool too_deep; /* The last stack was too deep to be read. */
  int capacity;
  /* The frames before this index differ from those of the sample before. */
  int first_same;
  /* The frames before this index may belong to calls that the sample before did
   * not contain. */
  int first_known;
  /* How many of the outermost frames are certainly the calls of the last sample
   * that was put into the ring. */
  int same;
  /* The number of marking passes that were done when the stack was read. */
  uint64_t marking;
  uint64_t armed_at; /* When all functions on that stack were armed. */
  /* Whether this sample contains a new call of a function that is switched
   * off. */
  bool has_new;
  /* How many samples in a row have found this stack, counted up to 2. */
  unsigned samples;
  uint64_t same_since; /* The time of the first of them. */
  /* The number of events that the thread had recorded at the last sample. */
  uint64_t events;
  struct st_stack_frame* frames;
};

static struct {
  pthread_t thread;
  /* The sampling thread's gettid(), which the thread itself stores. */
  pid_t kernel_id;
  pthread_mutex_t lock;
  pthread_mutex_t joining; /* Held by the thread that joins the sampling one. */
  pthread_cond_t changed;
  _Atomic bool running;
  bool stopping;
  uint64_t stopped_at; /* When `stopping` was set. */
} sampler = {.lock = PTHREAD_MUTEX_INITIALIZER,
             .joining = PTHREAD_MUTEX_INITIALIZER};

/* A hash table of threads by their ids.  The structs of ended threads are kept
 * in the list `unused`; no struct is ever freed. */
static struct known_thread* known[BUCKETS];
static struct known_thread* unused;
static int known_count;
static uint64_t pass, next_to_arm;
/* The time before the last walk over all threads.  The calls of a thread that
 * was not found then began later. */
static uint64_t last_walk;
/* The end of the last gap in the samples of all threads. */
static uint64_t gap_end;

_Atomic uint64_t st_sampled_stacks;

static struct known_thread* take_unused(void) {
  struct known_thread* k = unused;
  if (k)
    unused = k->next;
  else if (known_count < MAX_THREADS && (k = calloc(1, sizeof *k)))
    known_count++;
  return k;
}

/* Returns whether the thread has calls.  Its `native_id` is not valid before. */
static bool has_calls(uint64_t address) {
  struct st_stack_thread t;
  return st_stack_read_thread(&st_python_layout, &st_own_memory, address, &t) &&
         t.frame;
}

/* Whether a thread runs callbacks for us: the program does not wait then. */
static bool is_ours(uint64_t native_id) {
  char name[16];
  return native_id != (uint64_t)getpid() &&
         st_read_own_thread_file(native_id, "comm", name, sizeof name) &&
         st_is_own_thread(name);
}

/* Returns the state of the thread whose thread state is at an address.  A new
 * thread gets a new state.  Returns NULL if there are too many threads, or if a
 * new thread has no calls. */
static struct known_thread* get_known(const struct st_stack_thread* thread,
                                      uint64_t address) {
  uint64_t thread_id = thread->id;
  struct known_thread** chain = &known[thread_id % BUCKETS];
  for (struct known_thread* k = *chain; k; k = k->next) {
    if (atomic_load(&k->shared.thread_id) == thread_id)
      return k;
  }
  struct known_thread* k = has_calls(address) ? take_unused() : NULL;
  if (!k)
    return NULL;
  k->next = *chain;
  *chain = k;
  k->depth = 0;
  k->samples = 0;
  k->same = INT_MAX;
  k->time = k->cpu_ns = k->counted_ns = k->wait_end = k->ready_at =
      k->blocked_at = 0;
  k->waits = false;
  k->is_ours = is_ours(thread->native_id);
  k->times = k->is_ours ? NULL : st_sampler_times_of(thread->native_id);
  k->shared.owners = (struct st_time_owners){0};
  atomic_store(&k->shared.ran[0], NULL);
  atomic_store(&k->shared.last_event, 0);
  atomic_store(&k->shared.cpu_ns, 0);
  atomic_store(&k->shared.waited, 0);
  atomic_store(&k->shared.until, last_walk);
  atomic_store(&k->shared.thread_id, thread_id);
  return k;
}

static void forget_known(struct known_thread** at) {
  struct known_thread* k = *at;
  atomic_store(&k->shared.thread_id, 0);
  *at = k->next;
  k->next = unused;
  unused = k;
}

/* Finds the calls that may be new where the interpreter reports no calls. */
static void find_new(struct known_thread* k) {
  k->first_known = k->first_same;
  k->has_new = k->first_known > 0;
}

/* Arms the functions on the stack, and finds the calls that may be new.  A call
 * is known if the previous sample contains it.  That is certain if its frame is
 * unchanged and each begin of a call of its function was reported since.  If not,
 * because of short calls on another thread, the sample is put although it looks
 * the same: it may be one of other calls. */
static void arm_stack(struct known_thread* k) {
  k->first_known = 0;
  for (int i = 0; i < k->depth; i++) {
    struct st_code_record* r = st_code_record_find(k->frames[i].code);
    if (!r)
      continue;
    bool off =
        atomic_load_explicit(&r->state, memory_order_relaxed) == ST_CODE_OFF;
    if ((off && i < k->first_same) ||
        atomic_load(&r->reported_since) > k->armed_at)
      k->first_known = i + 1;
    st_code_record_arm(r);
  }
  k->armed_at = st_boottime_ns();
  k->has_new = k->first_known > 0;
  if (k->has_new)
    k->samples = 0;
  if (k->depth - k->first_known < k->same)
    k->same = k->depth - k->first_known;
}

static bool hand_on(struct known_thread* k, uint64_t time, uint64_t read,
                    bool gone, uint64_t instruction) {
  bool put = st_samples_put(
      &(struct st_stack_sample){.thread = &k->shared,
                                .thread_id = atomic_load(&k->shared.thread_id),
                                .native_id = k->native_id,
                                .time = time,
                                .read = read,
                                .before = atomic_load(&k->shared.until),
                                .gone = gone,
                                .instruction = instruction,
                                .wait_begin = k->wait_begin,
                                .wait_end = k->wait_end,
                                .cpu_ns = k->cpu_ns,
                                .known = k->same,
                                .depth = gone || k->depth < 0 ? 0 : k->depth,
                                .frames = k->frames});
  if (put)
    k->same = INT_MAX;
  else
    k->samples = 0; /* The next sample is put, though it may be the same. */
  return put;
}

/* Keeps the last stack.  `changed`: it has other calls than the one before. */
static bool keep(struct known_thread* k, const struct st_stack_frame* frames,
                 int depth, bool changed) {
  if (depth > k->capacity) {
    void* grown = realloc(k->frames, (size_t)depth * sizeof *frames);
    if (!grown)
      return false;
    k->frames = grown;
    k->capacity = depth;
  }
  if (depth > 0)
    memcpy(k->frames, frames, (size_t)depth * sizeof *frames);
  k->depth = depth;
  if (changed)
    k->samples = 0;
  return true;
}

/* Returns whether two frames at the same address can be the same call.  `f` was
 * read later; `marked` says that all open calls were marked in between. */
static bool may_be_same(const struct st_stack_frame* f,
                        const struct st_stack_frame* g, bool marked) {
  return f->address == g->address && f->code == g->code &&
         (f->object == g->object ? f->object || !marked : !g->object);
}

/* Returns the number of outermost frames that are the same in two stacks.  If
 * the state of a frame has changed, it has run: its calls are not the same. */
static int count_same(const struct st_stack_frame* a, int a_depth,
                      const struct st_stack_frame* b, int b_depth,
                      bool marked) {
  for (int same = 0; same < a_depth && same < b_depth; same++) {
    const struct st_stack_frame* f = &a[a_depth - 1 - same];
    const struct st_stack_frame* g = &b[b_depth - 1 - same];
    if (!may_be_same(f, g, marked))
      return same;
    if (f->state != g->state)
      return same + 1;
  }
  return a_depth < b_depth ? a_depth : b_depth;
}

/* Reads the frames of a thread down to `stop`.  If the thread has used no CPU
 * time meanwhile, the frames are those of one moment.  If it ran for a part of
 * the time, or if the stack is torn, the stack is read again.  While a thread runs
 * all the time, its frames may be those of two moments, so such a read may not take
 * long, as it does if the sampling thread gets no CPU. */
static int read_frames(struct known_thread* k, uint64_t address, uint64_t stop,
                       struct st_stack_frame* frames) {
  int depth = ST_STACK_TORN;
  for (int i = 0; i < MAX_READS; i++) {
    struct st_stack_thread thread;
    k->read_begin = st_boottime_ns();
    uint64_t cpu = i ? st_thread_cpu_ns(k->native_id) : k->cpu_ns;
    if (!st_stack_read_thread(&st_python_layout, &st_own_memory, address,
                              &thread))
      return ST_STACK_TORN;
    thread.stop = stop;
    depth = st_stack_read(&st_python_layout, &st_own_memory, &thread, frames);
    uint64_t ran = st_thread_cpu_ns(k->native_id) - cpu;
    k->read_end = ran ? st_boottime_ns() : k->read_begin;
    uint64_t took = k->read_end - k->read_begin;
    bool is_good = depth != ST_STACK_TORN && ran > took / 2;
    if (!ran || (is_good && took < LONG_READ_NS))
      break;
  }
  bool late = k->read_end - k->read_begin >= LONG_READ_NS;
  return late ? ST_STACK_TORN : depth;
}

/* Reads the stack of a thread that has run since its last sample.  Where the
 * interpreter reports calls, a second look reads only the frames that were new
 * in the first one, if the others are still there.  If the stack cannot be read,
 * keeps the last sample and returns false. */
static bool read_stack(struct known_thread* k, uint64_t address, bool second) {
  static struct st_stack_frame frames[ST_STACK_MAX_DEPTH];
  int known = second && ST_CALLS_ARE_REPORTED ? k->first_known : k->depth;
  uint64_t stop = known < k->depth ? k->frames[known].address : 0;
  bool marked = !ST_CALLS_ARE_REPORTED && st_marking_done() > k->marking;
  int depth = read_frames(k, address, stop, frames);
  k->too_deep = depth == ST_STACK_TOO_DEEP;
  if (depth > 0 && stop && frames[depth - 1].address == stop) {
    int rest = k->depth - known;
    if (frames[depth - 1].code != k->frames[known].code ||
        --depth + rest > ST_STACK_MAX_DEPTH)
      return false;
    uint64_t state = frames[depth].state;
    memcpy(frames + depth, k->frames + known, (size_t)rest * sizeof *frames);
    frames[depth].state = state;
    depth += rest;
  }
  if (depth < 0)
    return false;
  /* No call begins during a pass, so one that ends after this moment marks each
   * call of this stack that is still open then.  One that has ended during the
   * reading need not: such a call may have begun after it. */
  k->marking = st_marking_done();
  int same = count_same(frames, depth, k->frames, k->depth, marked);
  k->first_same = depth - same;
  if (!ST_CALLS_ARE_REPORTED && k->depth && same < k->same)
    k->same = same;
  return keep(k, frames, depth, same < depth || depth != k->depth);
}

/* Returns the instruction in which the thread has waited since its last sample;
 * 0 if it has not waited, or if that is known. */
static uint64_t new_wait(const struct known_thread* k, bool idle) {
  uint64_t instruction;
  return idle && !k->waits && k->depth > 0 &&
                 st_thread_is_blocked(k->native_id, st_python_gil()) &&
                 st_stack_read_instruction(&st_python_layout, &st_own_memory,
                                           &k->frames[0], &instruction)
             ? instruction
             : 0;
}

/* Notes that the thread has run since its last sample: since then a wait can
 * have begun after `begin`, and one can have ended before `end`. */
static void note_run(struct known_thread* k, uint64_t begin, uint64_t end) {
  k->wait_begin = begin;
  if (k->waits) {
    k->wait_end = end;
    k->samples = 0;
  }
  k->waits = false;
}

/* Adds the time for which the thread has waited for a CPU since the last
 * reading. */
static void add_ready(struct known_thread* k, uint64_t time) {
  uint64_t ready;
  if (k->is_ours || !st_thread_waited_ns(k->native_id, &ready))
    return;
  if (k->ready_at && ready > k->ready_ns) {
    st_sampler_add(&st_sampler_totals.ready_ns, ready - k->ready_ns);
    if (k->times)
      st_sampler_add(&k->times->ready_ns, ready - k->ready_ns);
  }
  atomic_store(&st_sampler_totals.knows_ready, true);
  k->ready_ns = ready;
  k->ready_at = time;
}

/* How long a thread has run and waited. */
struct elapsed {
  uint64_t ran, waited;
};

/* Returns the times since the last sample of a thread.  Those of a new thread
 * are since the last walk, which did not find it; it waited for an unknown part
 * of that. */
static struct elapsed elapsed_since_last(const struct known_thread* k,
                                         uint64_t time, uint64_t cpu) {
  uint64_t elapsed = time - (k->time ? k->time : last_walk);
  uint64_t ran = cpu > k->counted_ns ? cpu - k->counted_ns : 0;
  ran = ran < elapsed ? ran : elapsed;
  return (struct elapsed){ran, k->time ? elapsed - ran : 0};
}

static void add_to_totals(const struct known_thread* k, struct elapsed e) {
  if (k->is_ours)
    return;
  st_sampler_add(&st_sampler_totals.running_ns, e.ran);
  st_sampler_add(&st_sampler_totals.waiting_ns, e.waited);
  if (k->times) {
    st_sampler_add(&k->times->running_ns, e.ran);
    st_sampler_add(&k->times->waiting_ns, e.waited);
  }
}

/* Adds the times of a thread since its last sample, and returns them. */
static struct elapsed add_elapsed(struct known_thread* k, uint64_t time,
                                  uint64_t cpu) {
  struct elapsed e = elapsed_since_last(k, time, cpu);
  add_to_totals(k, e);
  k->time = time;
  k->cpu_ns = cpu;
  k->counted_ns += e.ran;
  return e;
}

/* Adds the times of a thread that has ended, from its last sample to its last
 * event: how long it had run then, it has told itself. */
static void add_elapsed_to_end(struct known_thread* k) {
  uint64_t end = atomic_load(&k->shared.last_event);
  uint64_t cpu = atomic_load(&k->shared.cpu_ns);
  if (end > k->time && cpu > k->counted_ns)
    add_elapsed(k, end, cpu);
}

/* Notes that a round begins.  If there was none for long, or none that found
 * all threads, the trace gets a gap. */
static void note_round(uint64_t time) {
  uint64_t begin = last_walk > gap_end ? last_walk : gap_end;
  if (time - begin >= ST_SAMPLE_GAP_NS && st_samples_put_gap(begin, time))
    gap_end = time;
}

/* Whether the thread ran for long between the read of its stack and the arming
 * of its functions: a call may have ended, and the next one begun, in between. */
static bool is_late(const struct known_thread* k) {
  return k->has_new && st_boottime_ns() - k->read_begin >= LONG_READ_NS &&
         st_thread_cpu_ns(k->native_id) != k->cpu_ns;
}

/* Whether the thread runs.  One that has used CPU time while its stack was read
 * does.  Another one waits, or has no CPU: this thread may have taken it.  Where
 * it was last found blocked, it has just been woken. */
static bool is_running(struct known_thread* k) {
  const struct st_address_range none = {0};
  uint64_t at = 0;
  if (k->read_end > k->read_begin)
    return true;
  if (k->depth > 0)
    st_stack_read_instruction(&st_python_layout, &st_own_memory, &k->frames[0],
                              &at);
  if (!st_thread_is_blocked(k->native_id, none))
    return at != k->blocked_at;
  k->blocked_at = at;
  return false;
}

/* Notes which CPU time of a new thread is not counted: what it has more than the
 * time since the last walk was before the recording, or before its first call. */
static void leave_out_earlier(struct known_thread* k, uint64_t cpu) {
  uint64_t most = st_boottime_ns() - last_walk;
  k->counted_ns = cpu > most ? cpu - most : 0;
}

static void sample_thread(struct known_thread* k, uint64_t address,
                          bool second) {
  uint64_t time = st_boottime_ns();
  /* An event after this moment may change the stack: it is read once more. */
  uint64_t events = atomic_load(&k->shared.events);
  uint64_t cpu = st_thread_cpu_ns(k->native_id), last = k->time;
  if (!cpu) { /* It has ended, and leaves the list of threads soon. */
    k->has_new = false;
    return;
  }
  if (!last)
    leave_out_earlier(k, cpu);
  bool idle = last && cpu == k->cpu_ns && k->samples;
  struct elapsed e = add_elapsed(k, time, cpu);
  if (!idle)
    note_run(k, last ? last + e.ran : time, time - e.ran);
  if (!idle && time - k->ready_at >= READY_PAUSE_NS)
    add_ready(k, time);
  k->read_begin = k->read_end = time;
  bool known_stack = idle || read_stack(k, address, second);
  if (!known_stack) {
    if (k->too_deep && !k->is_ours)
      st_sampler_add(&st_sampler_totals.too_deep_ns, e.ran);
    k->samples = 0; /* The stack must be read although the thread is idle. */
    return;
  }
  bool runs = !ST_CALLS_ARE_REPORTED && !idle && is_running(k);
  st_sampled_times_add(&(struct st_sampled_time){.thread = &k->shared,
                                                 .native_id = k->native_id,
                                                 .cpu_ns = cpu,
                                                 .frames = k->frames,
                                                 .depth = k->depth,
                                                 .time = time,
                                                 .ran = e.ran,
                                                 .waited = e.waited,
                                                 .runs = runs});
  if (events != k->events)
    k->samples = 0;
  k->events = events;
  if (idle) {
    k->has_new = false;
    atomic_store(&k->shared.until, time);
  } else if (ST_CALLS_ARE_REPORTED)
    arm_stack(k);
  else
    find_new(k);
  if (ST_CALLS_ARE_REPORTED && is_late(k)) {
    k->samples = 0;
    return;
  }
  uint64_t wait = second ? 0 : new_wait(k, idle);
  if ((k->samples < 2 || wait) &&
      !hand_on(k, k->read_begin, k->read_end, false, wait))
    return;
  k->waits = k->waits || wait;
  if (!k->samples)
    k->same_since = time;
  k->samples += k->samples < 2;
  st_merging_note_same(k->same_since, time);
  atomic_store(&k->shared.until, k->read_begin);
}

static void drop_ended(void) {
  for (int i = 0; i < BUCKETS; i++) {
    for (struct known_thread** p = &known[i]; *p;) {
      uint64_t now = (*p)->pass != pass ? st_boottime_ns() : 0;
      if (now)
        add_elapsed_to_end(*p);
      if (now && hand_on(*p, now, now, true, 0))
        forget_known(p);
      else
        p = &(*p)->next;
    }
  }
}

/* Notes the CPU time of a thread that is there when the recording begins: it may
 * have run for long before. */
static void note_present(const struct st_stack_thread* thread,
                         uint64_t address) {
  struct known_thread* k =
      thread->id && thread->native_id ? get_known(thread, address) : NULL;
  if (!k)
    return;
  k->pass = pass;
  k->native_id = thread->native_id;
  k->time = st_boottime_ns();
  k->cpu_ns = k->counted_ns = st_thread_cpu_ns(k->native_id);
}

static void note_present_threads(void) {
  uint64_t address = __atomic_load_n((uint64_t*)(uintptr_t)st_python_threads(),
                                     __ATOMIC_RELAXED);
  struct st_stack_thread thread;
  for (int count = 0; address && count < MAX_THREADS; count++) {
    if (!st_stack_read_thread_id(&st_python_layout, &st_own_memory, address,
                                 &thread))
      return;
    note_present(&thread, address);
    address = thread.next;
  }
}

/* Samples all threads, or, in a second look, those that have new calls. Returns
 * the time of the last sample with new calls; 0 if there is none. */
static uint64_t sample_threads(bool second) {
  /* The interpreter's state is always mapped.  The thread states are not. */
  uint64_t address = __atomic_load_n((uint64_t*)(uintptr_t)st_python_threads(),
                                     __ATOMIC_RELAXED);
  uint64_t last_new = 0, previous = 0, begin = st_boottime_ns();
  pass++;
  note_round(begin);
  int count = 0;
  while (address && count++ < MAX_THREADS) {
    struct st_stack_thread thread;
    if (!st_stack_read_thread_id(&st_python_layout, &st_own_memory, address,
                                 &thread) ||
        thread.previous != previous)
      /* The list of threads is changing, or this thread state was freed.  So a
       * thread that was not found may still run. */
      return last_new;
    uint64_t state = previous = address;
    address = thread.next;
    struct known_thread* k = thread.id && thread.native_id &&
                                     thread.native_id != st_merging_thread_id()
                                 ? get_known(&thread, state)
                                 : NULL;
    if (!k)
      continue;
    k->native_id = thread.native_id;
    k->pass = pass;
    if (!second || k->has_new) {
      sample_thread(k, state, second);
      atomic_fetch_add(&st_sampled_stacks, 1);
    }
    if (k->has_new)
      last_new = k->time;
  }
  last_walk = begin;
  drop_ended();
  if (!ST_CALLS_ARE_REPORTED && st_samples_are_many())
    st_merging_wake();
  st_merging_follow(st_samples_wait_since(), begin);
  return last_new;
}

static uint64_t look(bool second) {
  uint64_t begin = st_boottime_ns();
  uint64_t last_new = sample_threads(second);
  st_look_times_add(begin, st_boottime_ns());
  return last_new;
}

static void arm_in_turn(void) {
  uint32_t size = st_code_records_count();
  for (int i = 0; size && i < ARMED_IN_TURN; i++)
    st_code_record_arm(st_code_record_at((uint32_t)(next_to_arm++ % size)));
}

/* Adds the times of the threads until the sampling was stopped.  Without this,
 * the last wait for a CPU would count as blocked. */
static void add_last_times(void) {
  int count = 0;
  for (int i = 0; i < BUCKETS; i++) {
    for (struct known_thread* k = known[i]; k; k = k->next) {
      if (k->ready_at >= sampler.stopped_at)
        continue; /* The last look has read both times. */
      uint64_t cpu =
          count++ < ST_TIMED_THREADS ? st_thread_cpu_ns(k->native_id) : 0;
      if (!cpu) {
        add_elapsed_to_end(k);
        continue;
      }
      if (sampler.stopped_at > k->time)
        add_elapsed(k, sampler.stopped_at, cpu);
      add_ready(k, sampler.stopped_at);
    }
  }
}

static uint64_t own_cpu_time(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (uint64_t)t.tv_sec * NS + (uint64_t)t.tv_nsec;
}

/* Sleeps for `ns` nanoseconds.  Returns false if the sampling thread has to
 * stop. */
static bool wait_for(uint64_t ns) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  uint64_t until = (uint64_t)t.tv_sec * NS + (uint64_t)t.tv_nsec + ns;
  t.tv_sec = (time_t)(until / NS);
  t.tv_nsec = (long)(until % NS);
  pthread_mutex_lock(&sampler.lock);
  while (!sampler.stopping &&
         pthread_cond_timedwait(&sampler.changed, &sampler.lock, &t) == 0) {
  }
  bool stopping = sampler.stopping;
  pthread_mutex_unlock(&sampler.lock);
  return !stopping;
}

/* Waits without sleeping.  A thread that sleeps for 50 us gets its CPU too
 * late, on a busy machine by milliseconds.  Nor is the sleep free: it needs
 * half as much CPU time as this wait. */
static void await(uint64_t time) {
  while (st_boottime_ns() < time) {
  }
}

static void* run(void* unused) {
  (void)unused;
  sampler.kernel_id = (pid_t)syscall(SYS_gettid);
  pthread_setname_np(pthread_self(), "stretto-stacks");
  prctl(PR_SET_TIMERSLACK, 1);
  uint64_t pause = ST_SAMPLING_PAUSE_NS, last = 0;
  while (wait_for(pause)) {
    uint64_t start = own_cpu_time();
    uint64_t now = st_boottime_ns();
    if (last)
      st_sampler_note_gap(now - last);
    last = now;
    uint64_t last_new = look(false);
    if (last_new) {
      await(last_new + ST_SECOND_LOOK_NS);
      look(true);
      if (!ST_CALLS_ARE_REPORTED)
        st_merging_wake();
    }
    arm_in_turn();
    st_threshold_follow();
    st_sampler_publish();
    uint64_t cost = (own_cpu_time() - start) * SAMPLING_SHARE;
    pause = cost > ST_SAMPLING_PAUSE_NS ? cost : ST_SAMPLING_PAUSE_NS;
  }
  /* Calls that ended since the last round have their ends, or the trace a gap. */
  if (st_boottime_ns() - last_walk >= ST_SAMPLE_GAP_NS)
    look(false);
  add_last_times();
  return NULL;
}

static bool start_thread(void) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&sampler.changed, &attributes);
  pthread_condattr_destroy(&attributes);
  pthread_mutex_init(&sampler.lock, NULL);
  sigset_t every, old;
  sigfillset(&every);
  pthread_sigmask(SIG_SETMASK, &every, &old);
  sampler.stopping = false;
  sampler.running = pthread_create(&sampler.thread, NULL, run, NULL) == 0;
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  return sampler.running;
}

static void forget(void) {
  sampler.running = false;
  pthread_mutex_init(&sampler.joining, NULL);
}

static void watch_forks(void) {
  pthread_atfork(NULL, NULL, forget);
}

bool st_sampler_start(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, watch_forks);
  if (sampler.running)
    return true;
  if (!st_own_memory_works())
    return false;
  if (!last_walk) {
    last_walk = st_boottime_ns();
    note_present_threads();
  }
  return start_thread();
}

void st_sampler_forget_threads(void) {
  for (int i = 0; i < BUCKETS; i++) {
    while (known[i])
      forget_known(&known[i]);
  }
}

void st_sampler_forget_gap(void) {
  last_walk = gap_end = 0;
}

static void stop_and_join(void) {
  pthread_mutex_lock(&sampler.lock);
  sampler.stopping = true;
  sampler.stopped_at = st_boottime_ns();
  pthread_cond_signal(&sampler.changed);
  pthread_mutex_unlock(&sampler.lock);
  st_thread_join(sampler.thread, &sampler.kernel_id);
  sampler.running = false;
}

void st_sampler_stop(void) {
  if (!sampler.running)
    return;
  Py_BEGIN_ALLOW_THREADS
  pthread_mutex_lock(&sampler.joining);
  if (sampler.running)
    stop_and_join();
  pthread_mutex_unlock(&sampler.joining);
  Py_END_ALLOW_THREADS
}
