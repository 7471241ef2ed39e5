#include "hooks/merging_thread.h"

#include <pthread.h>
#include <stdatomic.h>

#include "hooks/gil_thread.h"
#include "hooks/python_layout.h"

enum { LONG_PAUSE_MS = 3600000 }; /* It is woken. */

static struct st_merging functions;
static _Atomic uint64_t done;
static _Atomic bool requested;
/* Only the sampling thread uses these two: whether to ask in this round, and
 * when it last did. */
static bool due;
static uint64_t last_request;

static bool is_needed(void) {
  return atomic_load(&requested) ||
         (!ST_CALLS_ARE_REPORTED && functions.is_needed());
}

static void work(void) {
  bool all = atomic_exchange(&requested, false);
  if (!ST_CALLS_ARE_REPORTED) {
    st_python_mark_calls();
    atomic_fetch_add(&done, 1);
  }
  functions.merge();
  if (all)
    functions.write_open();
}

static struct st_gil_thread merger = {
    .name = "stretto-calls",
    .pause_ms = ST_CALLS_ARE_REPORTED ? LONG_PAUSE_MS : ST_MERGING_PAUSE_MS,
    .is_needed = is_needed,
    .work = work};

static void forget(void) {
  st_gil_thread_forget(&merger);
}

static void initialize(void) {
  pthread_atfork(NULL, NULL, forget);
}

bool st_merging_start(const struct st_merging* f) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, initialize);
  if (merger.running)
    return true;
  functions = *f;
  return ST_CALLS_ARE_REPORTED || st_gil_thread_start(&merger);
}

void st_merging_stop(void) {
  st_gil_thread_stop(&merger);
}

void st_merging_wake(void) {
  st_gil_thread_wake(&merger);
}

void st_merging_note_same(uint64_t since, uint64_t now) {
  uint64_t at = since + ST_MERGING_AGE_NS;
  due = due || (at <= now && at > last_request);
}

void st_merging_follow(uint64_t waiting_since, uint64_t now) {
  if (waiting_since && waiting_since + ST_MERGING_AGE_NS <= now)
    due = true;
  if (!due || now < last_request + ST_MERGING_AGE_NS)
    return;
  due = false;
  last_request = now;
  atomic_store(&requested, true);
  if (st_gil_thread_start(&merger))
    st_gil_thread_wake(&merger);
}

uint64_t st_marking_done(void) {
  return done;
}

uint64_t st_merging_thread_id(void) {
  return (uint64_t)merger.kernel_id;
}
