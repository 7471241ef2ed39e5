#include "preload/sampler.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/fork_guard.h"
#include "probes/call_chain.h"
#include "probes/heap_file.h"
#include "probes/heap_pace.h"

enum {
  MAX_DEPTH = 128,
  CPU_LIMIT = 50, /* Thousandths of the CPU time. */
  MAX_DOUBLED = 64,
};

_Atomic bool st_sampler_is_on;
struct st_heap_profile st_sampler_profile = {.mutex =
                                                 PTHREAD_MUTEX_INITIALIZER};
_Thread_local struct st_poisson st_sampler_poisson;

static struct {
  char folder[512];
  uint64_t interval; /* The one that was asked for. */
  struct st_heap_file file;
  struct st_heap_pace pace;
  _Atomic uint64_t seeds;
  /* 1 in the process whose profile this is; the kernel makes it 0 in a child. */
  volatile int* is_owner;
  /* Whether the next sample starts a profile: the first one of the program, or of
   * the child of a fork. */
  bool has_to_start, is_forked;
} sampler;

static struct st_fork_entry at_fork = {.mutexes = {&st_sampler_profile.mutex}};

/* Whether the thread is in this file. */
static _Thread_local bool is_inside;

static void on_fork(void* self) {
  (void)self;
  sampler.has_to_start = sampler.is_forked = true;
}

static bool start(void) {
  struct st_heap_profile* p = &st_sampler_profile;
  if (!st_heap_file_create(&sampler.file, sampler.folder, sampler.interval,
                           !sampler.is_forked))
    return false;
  st_heap_profile_init(p);
  p->heaps[0].stacks = st_heap_file_totals(&sampler.file);
  p->heaps[0].capacity = ST_FILE_STACKS;
  *sampler.is_owner = 1;
  return true;
}

/* Starts a profile, or stops sampling. */
static void start_or_stop(void) {
  struct st_heap_profile* p = &st_sampler_profile;
  sampler.has_to_start = false;
  p->heaps[0].stacks = NULL; /* It is in the parent's file. */
  st_heap_profile_clear(p);
  st_heap_file_leave(&sampler.file);
  if (!start())
    st_sampler_is_on = false;
}

/* Whether the profile is that of this process.  The caller holds the mutex. */
static bool is_ours(void) {
  if (*sampler.is_owner)
    return true;
  if (sampler.has_to_start)
    start_or_stop();
  return *sampler.is_owner;
}

static uint64_t begin(void) {
  pthread_mutex_lock(&st_sampler_profile.mutex);
  uint64_t began = is_ours() ? st_heap_pace_begin(&sampler.pace) : 0;
  pthread_mutex_unlock(&st_sampler_profile.mutex);
  return began;
}

static void add(const void* block, uint64_t weight, const uint64_t* addresses,
                uint32_t depth) {
  uint32_t stack = st_heap_file_stack(&sampler.file, addresses, depth);
  st_heap_file_begin(&sampler.file);
  st_heap_add(&st_sampler_profile, 0, stack, (uint64_t)(uintptr_t)block,
              weight);
  st_heap_file_end(&sampler.file, &st_sampler_profile, sampler.pace.interval);
}

/* The stack is read without the mutex, as that may wait for other locks. */
static void record(const void* block, uint64_t weight, const void* frame) {
  uint64_t addresses[MAX_DEPTH];
  uint64_t began = begin();
  if (!*sampler.is_owner)
    return;
  uint32_t depth = st_call_chain(frame, addresses, MAX_DEPTH);
  pthread_mutex_lock(&st_sampler_profile.mutex);
  if (is_ours()) {
    add(block, weight, addresses, depth);
    st_heap_pace_end(&sampler.pace, began);
  }
  pthread_mutex_unlock(&st_sampler_profile.mutex);
}

static uint64_t seed(void) {
  return st_sampler_poisson.random ? 0 : atomic_fetch_add(&sampler.seeds, 1);
}

__attribute__((noinline)) void st_sampler_add(const void* block, size_t size,
                                              const void* frame) {
  uint64_t weight = st_poisson_weight(&st_sampler_poisson, size,
                                      sampler.pace.interval, seed());
  if (!weight || is_inside)
    return;
  int error = errno;
  is_inside = true;
  record(block, weight, frame);
  is_inside = false;
  errno = error;
}

bool st_sampler_remove(const void* block, struct st_heap_block* removed) {
  if (is_inside)
    return false;
  int error = errno;
  bool was_sampled = false;
  is_inside = true;
  pthread_mutex_lock(&st_sampler_profile.mutex);
  if (*sampler.is_owner) {
    st_heap_file_begin(&sampler.file);
    was_sampled = st_heap_remove(&st_sampler_profile,
                                 (uint64_t)(uintptr_t)block, removed);
    st_heap_file_end(&sampler.file, &st_sampler_profile, sampler.pace.interval);
  }
  pthread_mutex_unlock(&st_sampler_profile.mutex);
  is_inside = false;
  errno = error;
  return was_sampled;
}

void st_sampler_put_back(const struct st_heap_block* removed) {
  int error = errno;
  is_inside = true;
  pthread_mutex_lock(&st_sampler_profile.mutex);
  if (*sampler.is_owner) {
    st_heap_file_begin(&sampler.file);
    st_heap_put_back(&st_sampler_profile, removed);
    st_heap_file_end(&sampler.file, &st_sampler_profile, sampler.pace.interval);
  }
  pthread_mutex_unlock(&st_sampler_profile.mutex);
  is_inside = false;
  errno = error;
}

/* Reads the variable; returns false if it is damaged. */
static bool configure(const char* text) {
  char* end;
  sampler.interval = strtoull(text, &end, 10);
  if (*end != ':' || !sampler.interval || sampler.interval >> 40 ||
      strlen(end + 1) >= sizeof sampler.folder)
    return false;
  strcpy(sampler.folder, end + 1);
  return true;
}

static bool make_owner_page(void) {
  void* page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED || madvise(page, 4096, MADV_WIPEONFORK))
    return false;
  sampler.is_owner = page;
  return true;
}

/* Whether the folder has a file of this process: one of the program that it has
 * executed before. */
static bool has_old_file(void) {
  DIR* folder = opendir(sampler.folder);
  bool found = false;
  for (struct dirent* e; folder && !found && (e = readdir(folder));)
    found = strtol(e->d_name, NULL, 10) == getpid();
  if (folder)
    closedir(folder);
  return found;
}

__attribute__((constructor)) static void start_sampler(void) {
  const char* text = getenv("STRETTO_NATIVE_HEAP");
  if (!text || !configure(text))
    return;
  int error = errno;
  st_call_chain_prepare();
  if (make_owner_page()) {
    st_heap_pace_start(&sampler.pace, sampler.interval,
                       sampler.interval * MAX_DOUBLED, CPU_LIMIT);
    sampler.has_to_start = true;
    at_fork.child = on_fork;
    st_fork_register(&at_fork);
    /* opendir() allocates: a sample of that would make a file. */
    bool has_executed = has_old_file();
    st_sampler_is_on = true;
    if (has_executed)
      start_or_stop();
  }
  errno = error;
}
