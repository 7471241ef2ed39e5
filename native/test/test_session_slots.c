/* Session slots.  The last test starts and stops sessions, and visits the
 * sequences of all threads, while threads write events without a GIL.  It uses
 * slots, thread lists and locks in the way that bind/track_event/thread_state.c
 * needs on a free-threaded CPython. */
#include "session_slots.h"

#include <sched.h>

#include "producer_endpoint.h"
#include "thread_list.h"
#include "trace_events.h"
#include "track_event.h"

enum { PAGE = 4096, PAGES = 1, BUFFER = 7, SLOT = 3 };
enum { THREADS = 6, GENERATIONS = 3, EVENTS = 10000, SESSION_EVENTS = 400 };

static struct st_buffer_table* g_table;
static const uint8_t kDescriptor[] = {0x08, 0x2A};
static const struct st_track kThread = {42, kDescriptor, 2, NULL};

/* An arbiter with references: one of the slot, one of each sequence. */
struct owner {
  _Atomic int references;
  uint8_t* memory;
  struct st_producer_endpoint endpoint;
  struct st_arbiter arbiter;
};

static _Atomic int g_owners;

static void retain(void* owner) {
  atomic_fetch_add(&((struct owner*)owner)->references, 1);
}

static void release(struct owner* owner) {
  if (!owner || atomic_fetch_sub(&owner->references, 1) > 1)
    return;
  CHECK_EQ(owner->arbiter.live_writers, 0);
  st_arbiter_destroy(&owner->arbiter);
  st_producer_endpoint_destroy(&owner->endpoint);
  free(owner->memory);
  free(owner);
  atomic_fetch_sub(&g_owners, 1);
}

/* A thread and its sequence.  `lock` is held by the owner thread during an
 * event, and by any thread that visits the sequence. */
struct state {
  struct st_thread_record record;
  pthread_mutex_t lock;
  /* Whether the owner thread waits for a chunk in the middle of an event.  It
   * does so without the lock. */
  bool busy;
  uint32_t generation; /* 0: no sequence. */
  struct owner* owner;
  struct st_sequence sequence;
};

static _Thread_local struct state* g_own;
static _Atomic int g_running;
static _Atomic uint64_t g_events, g_written, g_lost, g_skipped;
static uint64_t g_freed;

static void* wait_begin(void) {
  g_own->busy = true;
  pthread_mutex_unlock(&g_own->lock);
  return NULL;
}

static void wait_end(void* unused) {
  (void)unused;
  pthread_mutex_lock(&g_own->lock);
  g_own->busy = false;
}

static struct st_session new_session(uint16_t producer) {
  struct owner* owner = calloc(1, sizeof *owner);
  struct st_shm shm;
  atomic_store(&owner->references, 1);
  atomic_fetch_add(&g_owners, 1);
  owner->memory = aligned_alloc(PAGE, PAGE * PAGES);
  memset(owner->memory, 0, PAGE * PAGES);
  CHECK(st_shm_init(&shm, owner->memory, PAGE * PAGES, PAGE));
  CHECK(st_producer_endpoint_init(&owner->endpoint, producer, g_table));
  st_producer_endpoint_set_own_shm(&owner->endpoint, &shm);
  st_producer_endpoint_allow_buffer(&owner->endpoint, BUFFER, true);
  CHECK(st_arbiter_init(&owner->arbiter, &shm, &st_in_process_sink,
                        &owner->endpoint));
  owner->arbiter.wait_hooks = (struct st_wait_hooks){wait_begin, wait_end, 0};
  return (struct st_session){.arbiter = &owner->arbiter,
                             .owner = owner,
                             .target_buffer = BUFFER,
                             .policy = ST_STALL};
}

static void close_sequence(struct state* t) {
  if (!t->generation)
    return;
  struct st_sequence* s = &t->sequence;
  st_slot_add_counts(SLOT, t->generation, s->events_written, s->events_lost);
  atomic_fetch_add(&g_written, s->events_written);
  atomic_fetch_add(&g_lost, s->events_lost);
  st_sequence_destroy(s);
  release(t->owner);
  t->generation = 0;
}

static struct st_sequence* current_sequence(struct state* t) {
  if (t->generation && t->generation == st_slot_running(SLOT))
    return &t->sequence;
  close_sequence(t);
  struct st_session session;
  t->generation = st_slot_join(SLOT, &session, retain);
  if (!t->generation)
    return NULL;
  t->owner = session.owner;
  CHECK(st_sequence_init(&t->sequence, session.arbiter, session.target_buffer,
                         session.policy, &kThread));
  return &t->sequence;
}

/* Writes an event to the session that runs now or next. */
static void write_event(struct state* t, uint64_t now) {
  struct st_event event = {.type = ST_INSTANT, .timestamp = now};
  struct st_sequence* s;
  pthread_mutex_lock(&t->lock);
  while (!(s = current_sequence(t))) {
    pthread_mutex_unlock(&t->lock);
    sched_yield();
    pthread_mutex_lock(&t->lock);
  }
  if (!st_sequence_write_small(s, ST_INSTANT, now, 0, 0, 0) &&
      st_sequence_prepare(s, now, ST_EVENT_ROOM))
    st_sequence_write(s, &event);
  pthread_mutex_unlock(&t->lock);
  if (atomic_fetch_add(&g_events, 1) % 64 == 0)
    sched_yield();
}

static void on_exit_of_thread(void) {
  pthread_mutex_lock(&g_own->lock);
  close_sequence(g_own);
  pthread_mutex_unlock(&g_own->lock);
}

static void free_state(struct st_thread_record* record, bool ended) {
  struct state* t = (struct state*)record;
  CHECK(ended && !t->generation);
  pthread_mutex_destroy(&t->lock);
  free(t);
  g_freed++;
}

static struct st_thread_list g_states = {.on_exit = on_exit_of_thread,
                                         .free_record = free_state};

static void* write_events(void* unused) {
  g_own = calloc(1, sizeof *g_own);
  pthread_mutex_init(&g_own->lock, NULL);
  st_thread_list_add(&g_states, &g_own->record, 0);
  st_thread_list_claim(&g_own->record);
  for (uint64_t now = 1; now <= EVENTS; now++)
    write_event(g_own, now);
  atomic_fetch_sub(&g_running, 1);
  return unused;
}

enum visit { FLUSH, CLEAR, STOP };

static void visit(struct st_thread_record* record, void* context) {
  struct state* t = (struct state*)record;
  enum visit what = *(enum visit*)context;
  pthread_mutex_lock(&t->lock);
  if (t->busy)
    atomic_fetch_add(&g_skipped, 1);
  else if (what == STOP)
    close_sequence(t);
  else if (t->generation && what == CLEAR)
    st_sequence_clear_state(&t->sequence);
  else if (t->generation)
    st_trace_writer_flush(&t->sequence.writer);
  pthread_mutex_unlock(&t->lock);
}

static void visit_all(enum visit what) {
  st_thread_list_visit(&g_states, visit, &what);
}

/* Runs a session for some events, and visits all threads meanwhile. */
static void run_session(uint16_t producer) {
  struct st_session session = new_session(producer);
  uint64_t until = atomic_load(&g_events) + SESSION_EVENTS;
  CHECK(st_slot_start(SLOT, &session));
  while (atomic_load(&g_events) < until && atomic_load(&g_running)) {
    visit_all(CLEAR);
    visit_all(FLUSH);
    sched_yield();
  }
  release(st_slot_stop(SLOT));
  visit_all(STOP);
}

static void run_threads(uint16_t* producer) {
  pthread_t threads[THREADS];
  atomic_store(&g_running, THREADS);
  for (int i = 0; i < THREADS; i++)
    CHECK(!pthread_create(&threads[i], NULL, write_events, NULL));
  while (atomic_load(&g_running))
    run_session(++*producer);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  st_thread_list_reap(&g_states);
}

static void sessions_start_and_stop_while_threads_write_and_lose_no_event(
    void) {
  st_thread_list_init(&g_states);
  g_table = st_buffer_table_create();
  CHECK(st_buffer_table_add(g_table, BUFFER, ring(64 << 20)));
  struct st_readback* readback = st_readback_create(0);
  uint16_t sessions = 0;
  for (int generation = 0; generation < GENERATIONS; generation++)
    run_threads(&sessions);
  uint64_t read = read_events(readback, g_table, BUFFER);
  CHECK_EQ(read, THREADS * GENERATIONS * EVENTS);
  CHECK_EQ(read, atomic_load(&g_written));
  CHECK_EQ(atomic_load(&g_lost), 0);
  CHECK_EQ(atomic_load(&g_owners), 0);
  CHECK_EQ(g_freed, THREADS * GENERATIONS);
  CHECK(!g_states.first);
  CHECK_EQ(st_readback_invalid_packets(readback), 0);
  printf("%u sessions, %llu visits of waiting threads\n", sessions,
         (unsigned long long)atomic_load(&g_skipped));
  st_readback_destroy(readback);
  st_buffer_table_destroy(g_table);
}

static int g_references;

static void count_reference(void* owner) {
  CHECK(owner == &g_references);
  g_references++;
}

static const struct st_session kSession = {.owner = &g_references,
                                           .target_buffer = 9};

static void slot_in_use_is_not_started_again(void) {
  CHECK(st_slot_start(0, &kSession));
  uint32_t generation = st_slot_running(0);
  CHECK(!st_slot_start(0, &kSession));
  CHECK_EQ(st_slot_running(0), generation);
  CHECK(st_slot_start(1, &kSession));
  CHECK_EQ(st_slot_running(1), generation + 1);
  CHECK(st_slot_stop(0) == &g_references);
  CHECK(st_slot_stop(1) == &g_references);
  CHECK(!st_slot_stop(1));
}

static void join_retains_the_owner_of_a_running_session_only(void) {
  struct st_session session = {0};
  CHECK(!st_slot_join(0, &session, count_reference));
  CHECK(st_slot_start(0, &kSession));
  CHECK_EQ(st_slot_join(0, &session, count_reference), st_slot_running(0));
  CHECK_EQ(session.target_buffer, 9);
  CHECK_EQ(g_references, 1);
  st_slot_stop(0);
}

static void slot_runs_since_its_start_until_its_stop(void) {
  uint32_t before = atomic_load(&st_start_counter);
  CHECK(st_slot_start(0, &kSession));
  uint32_t since = atomic_load(&st_start_counter);
  CHECK(!st_slot_runs_since(0, before) && st_slot_runs_since(0, since));
  CHECK(st_slot_runs_since(0, since + 5));
  st_slot_stop(0);
  CHECK(!st_slot_runs_since(0, since));
}

static void counts_of_an_earlier_session_are_ignored(void) {
  uint64_t written, lost;
  CHECK(st_slot_start(0, &kSession));
  uint32_t first = st_slot_running(0);
  st_slot_add_counts(0, first, 5, 2);
  st_slot_stop(0);
  st_slot_add_counts(0, first, 1, 0);
  CHECK_EQ(st_slot_counts(0, &written, &lost), first);
  CHECK(written == 6 && lost == 2);
  CHECK(st_slot_start(0, &kSession));
  st_slot_add_counts(0, first, 5, 2);
  CHECK_EQ(st_slot_counts(0, &written, &lost), first + 1);
  CHECK(written == 0 && lost == 0);
  st_slot_stop(0);
}

int main(void) {
  RUN(slot_in_use_is_not_started_again);
  RUN(join_retains_the_owner_of_a_running_session_only);
  RUN(slot_runs_since_its_start_until_its_stop);
  RUN(counts_of_an_earlier_session_are_ignored);
  RUN(sessions_start_and_stop_while_threads_write_and_lose_no_event);
  return 0;
}
