#include "hooks/merging_thread.h"

#include <pthread.h>
#include <stdatomic.h>

#include "hooks/gil_thread.h"
#include "hooks/python_layout.h"

static void (*merge)(void);
static _Atomic uint64_t done;

static void mark_and_merge(void) {
  st_python_mark_calls();
  atomic_fetch_add(&done, 1);
  merge();
}

static struct st_gil_thread merger = {.name = "stretto-calls",
                                      .pause_ms = ST_MERGING_PAUSE_MS,
                                      .work = mark_and_merge};

static void forget(void) {
  st_gil_thread_forget(&merger);
}

static void initialize(void) {
  pthread_atfork(NULL, NULL, forget);
}

bool st_merging_start(const struct st_merging* functions) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (ST_CALLS_ARE_REPORTED || merger.running)
    return true;
  pthread_once(&once, initialize);
  merge = functions->merge;
  merger.is_needed = functions->is_needed;
  return st_gil_thread_start(&merger);
}

void st_merging_stop(void) {
  st_gil_thread_stop(&merger);
}

void st_merging_wake(void) {
  st_gil_thread_wake(&merger);
}

uint64_t st_marking_done(void) {
  return done;
}

uint64_t st_merging_thread_id(void) {
  return (uint64_t)merger.kernel_id;
}
