#include "fast_clock.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#define CLOCK_SOURCE "tsc\n"
#else
#define CLOCK_SOURCE "arch_sys_counter\n"
#endif

enum {
  MIN_SPAN_NS = 100000,
  MAX_SPAN_NS = 4000000,
  /* An accurate pair foretells the next one to this. */
  MAX_ERROR_NS = 25,
  /* The clock rate is measured over a window of at least this length. */
  MIN_WINDOW_NS = 10000000,
  /* The clock rate is measured over a window of time.  When the window has
   * reached this length, a new one starts. */
  MAX_WINDOW_NS = 1000000000,
  /* The clock rate is measured again after this time. */
  MEASURE_PERIOD_NS = 1000000,
  ATTEMPTS = 4,
};

_Thread_local struct st_clock_pair st_clock_pair;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool available;
/* Whether `available` is set: a thread that reads true needs no pthread_once(),
 * whose code is far away. */
static atomic_bool has_looked;

/* The window over which the rate of the counter is measured. */
static pthread_mutex_t window_mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t window_counter, window_ns;
/* When the rate is measured next.  It is accessed with relaxed atomics: a thread
 * that reads an older time only tries to lock the mutex. */
static _Atomic uint64_t measure_ns;
/* Nanoseconds per count, shifted left by ST_RATE_SHIFT; 0 if not measured yet.
 * It is accessed with relaxed atomics, because a thread that reads an older
 * rate also computes a correct time. */
static _Atomic uint64_t current_rate;

static bool clock_source_is_counter(void) {
  char name[24] = "";
  FILE* file = fopen(
      "/sys/devices/system/clocksource/clocksource0/current_clocksource", "r");
  if (!file)
    return false;
  bool is_counter =
      fgets(name, sizeof name, file) && !strcmp(name, CLOCK_SOURCE);
  fclose(file);
  return is_counter;
}

#if defined(__x86_64__)
static bool counter_is_invariant(void) {
  unsigned a, b, c, d;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d >> 8 & 1);
}
#else
static bool counter_is_invariant(void) {
  /* The timer of the aarch64 architecture is always invariant. */
  return ST_HAS_COUNTER;
}
#endif

/* Returns how many counts may pass while counter and clock are read as a pair:
 * about a microsecond. */
static uint64_t max_read_counts(void) {
#if defined(__aarch64__)
  uint64_t hertz;
  __asm__("mrs %0, cntfrq_el0" : "=r"(hertz));
  return hertz / 1000000 + 2;
#else
  return 2000;
#endif
}

static void look(void) {
  available = counter_is_invariant() && clock_source_is_counter();
  atomic_store_explicit(&has_looked, true, memory_order_release);
}

bool st_fast_clock_available(void) {
  if (!atomic_load_explicit(&has_looked, memory_order_acquire))
    pthread_once(&once, look);
  return available;
}

/* Reads the counter and the clock as a pair.  Between the two reads of the
 * counter, the moment of the clock's is unknown, so a slow attempt (a cache miss,
 * an interrupt) is repeated, and the fastest one is taken.  Returns false if that
 * was slow too. */
static bool read_pair(uint64_t* counter, uint64_t* ns) {
  uint64_t most = max_read_counts(), least = UINT64_MAX;
  for (int attempt = 0; attempt < ATTEMPTS && least > most / 5; attempt++) {
    uint64_t before = st_counter();
    uint64_t now = st_boottime_ns();
    uint64_t took = st_counter() - before;
    if (took >= least)
      continue;
    least = took;
    *counter = before + took / 2;
    *ns = now;
  }
  return least < most;
}

/* Measures the counter's rate over the window.  Starts a new window when the
 * old one is long. */
static void update_rate(uint64_t counter, uint64_t ns) {
  uint64_t counts = counter - window_counter, elapsed = ns - window_ns;
  if (window_ns && elapsed < MIN_WINDOW_NS)
    return;
  bool sane =
      window_ns && elapsed <= 4ull * MAX_WINDOW_NS && counts > elapsed / 100;
  if (sane)
    atomic_store_explicit(&current_rate, (elapsed << ST_RATE_SHIFT) / counts,
                          memory_order_relaxed);
  if (!sane || elapsed > MAX_WINDOW_NS) {
    window_counter = counter;
    window_ns = ns;
  }
}

static void measure(uint64_t counter, uint64_t ns) {
  if (pthread_mutex_trylock(&window_mutex) != 0)
    return;
  update_rate(counter, ns);
  atomic_store_explicit(&measure_ns, ns + MEASURE_PERIOD_NS,
                        memory_order_relaxed);
  pthread_mutex_unlock(&window_mutex);
}

/* Whether a pair has given the time of the next one.  A thread that has not read
 * its clock for some time has a larger error, which says the same of a span. */
static bool has_foretold(const struct st_clock_pair* p, uint64_t counter,
                         uint64_t ns) {
  uint64_t elapsed = counter - p->base;
  uint64_t error = p->ns + ((elapsed * p->rate) >> ST_RATE_SHIFT) - ns;
  uint64_t spans = 1 + (ns - p->ns) / MAX_SPAN_NS;
  return error + spans * MAX_ERROR_NS <= 2 * spans * MAX_ERROR_NS;
}

/* Returns the span of a new pair, in counts.  `last` is that of the last one. */
static uint64_t next_span(const struct st_clock_pair* p, uint64_t last,
                          uint64_t counter, uint64_t ns, uint64_t rate) {
  uint64_t least = ((uint64_t)MIN_SPAN_NS << ST_RATE_SHIFT) / rate;
  uint64_t most = least * (MAX_SPAN_NS / MIN_SPAN_NS);
  if (!has_foretold(p, counter, ns))
    return least;
  return last < least ? least : last < most / 2 ? last * 2 : most;
}

uint64_t st_fast_clock_sync(void) {
  struct st_clock_pair* p = &st_clock_pair;
  uint64_t counter = 0, ns = 0, last_span = p->span;
  p->span = 0;
  if (!st_fast_clock_available())
    return st_boottime_ns();
  bool good = read_pair(&counter, &ns);
  if (good && ns >= atomic_load_explicit(&measure_ns, memory_order_relaxed))
    measure(counter, ns);
  uint64_t rate = atomic_load_explicit(&current_rate, memory_order_relaxed);
  if (ns < p->last)
    /* The time computed from the previous pair may have been some ns ahead of
     * the clock.  Time must not decrease. */
    ns = p->last;
  p->last = ns;
  if (!good || !rate)
    return ns;
  p->span = next_span(p, last_span, counter, ns, rate);
  p->base = counter;
  p->rate = rate;
  p->ns = ns;
  return ns;
}
