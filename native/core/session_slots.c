#include "session_slots.h"

#include <stddef.h>

#include "fork_guard.h"

struct st_session_slot st_session_slots[MAX_INSTANCES];
_Atomic uint32_t st_start_counter;

static pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct st_fork_entry g_fork = {.mutexes = {&g_mutex}};

static void watch_forks(void) {
  st_fork_register(&g_fork);
}

static struct st_session_slot* lock(int slot) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, watch_forks);
  pthread_mutex_lock(&g_mutex);
  return &st_session_slots[slot];
}

static void unlock(void) {
  pthread_mutex_unlock(&g_mutex);
}

bool st_slot_start(int slot, const struct st_session* session) {
  struct st_session_slot* s = lock(slot);
  bool stopped = !atomic_load(&s->running);
  if (stopped) {
    s->session = *session;
    s->events_written = s->events_lost = 0;
    s->generation = atomic_fetch_add(&st_start_counter, 1) + 1;
    atomic_store_explicit(&s->running, s->generation, memory_order_release);
  }
  unlock();
  return stopped;
}

void* st_slot_stop(int slot) {
  struct st_session_slot* s = lock(slot);
  void* owner = atomic_exchange(&s->running, 0) ? s->session.owner : NULL;
  unlock();
  return owner;
}

uint32_t st_slot_join(int slot, struct st_session* session,
                      void (*retain)(void* owner)) {
  struct st_session_slot* s = lock(slot);
  uint32_t generation = atomic_load(&s->running);
  if (generation) {
    *session = s->session;
    retain(session->owner);
  }
  unlock();
  return generation;
}

void st_slot_add_counts(int slot, uint32_t generation, uint64_t written,
                        uint64_t lost) {
  struct st_session_slot* s = lock(slot);
  if (s->generation == generation) {
    s->events_written += written;
    s->events_lost += lost;
  }
  unlock();
}

uint32_t st_slot_counts(int slot, uint64_t* written, uint64_t* lost) {
  struct st_session_slot* s = lock(slot);
  *written = s->events_written;
  *lost = s->events_lost;
  uint32_t generation = s->generation;
  unlock();
  return generation;
}
