/* Events of many threads, without a GIL that orders them: threads begin and
 * end, a reader reads, and a second session starts and stops meanwhile.  The
 * thread sanitizer checks for races. */
#include <pthread.h>
#include <stdatomic.h>

#include "call_table.h"
#include "fast_clock.h"
#include "identity_cache.h"
#include "producer_endpoint.h"
#include "trace_events.h"
#include "track_event.h"

enum { PAGE = 32768, PAGES = 16, LASTING = 7, CHANGING = 8 };
enum { THREADS = 6, GENERATIONS = 4, ROUNDS = 6000, NAMES = 40 };

static struct st_buffer_table* table;
static struct st_producer_endpoint endpoint;
static struct st_arbiter arbiter;
static _Atomic int running;
static _Atomic uint64_t written;
/* The names that all threads use.  Like code objects, names are identified by
 * their addresses. */
static const char names[NAMES][4];
static const uint8_t kDescriptor[] = {0x08, 0x2A};
static const struct st_track kThread = {42, kDescriptor, 2, NULL};

struct session {
  struct st_sequence sequence;
  struct st_identity_cache ids;
  struct st_call_table calls;
};

/* Writes an event whose name is new in this chunk. */
static void write_named(struct session* s, uint64_t now, const char* key) {
  if (!st_sequence_prepare(&s->sequence, now, ST_EVENT_ROOM))
    return;
  bool is_new;
  struct st_event event = {.type = ST_INSTANT, .timestamp = now};
  event.name_iid = st_intern(&s->sequence.interned, ST_INTERN_EVENT_NAME, &key,
                             sizeof key, &is_new);
  struct st_identity_slot* slot =
      st_identity_place(&s->ids, s->sequence.epoch, key);
  *slot = (struct st_identity_slot){(void*)(uintptr_t)key, s->sequence.epoch,
                                    event.name_iid};
  st_sequence_write(&s->sequence, &event);
}

static void write_instant(struct session* s, const char* key) {
  uint64_t now = st_fast_now();
  uint32_t iid = st_identity_find(&s->ids, s->sequence.epoch, key);
  if (!iid ||
      !st_sequence_write_small(&s->sequence, ST_INSTANT, now, 0, iid, 0))
    write_named(s, now, key);
}

static void write_call(struct session* s, const char* key) {
  static const struct st_function function = {"work", "work.py", 4, 7, 1};
  uint64_t now = st_fast_now();
  struct st_call_slot* slot = st_call_table_find(&s->calls, key);
  if (slot && slot->epoch == s->sequence.epoch &&
      st_sequence_write_block(&s->sequence, now, &slot->block, 0))
    return;
  if (!st_sequence_prepare(&s->sequence, now, ST_EVENT_ROOM))
    return;
  slot = st_call_table_place(&s->calls, key);
  slot->code = (void*)(uintptr_t)key;
  slot->epoch = s->sequence.epoch;
  if (!st_sequence_write_named_call(&s->sequence, now, 0, &function,
                                    &slot->block)) {
    slot->epoch = 0; /* There is no room for the event's names. */
    write_named(s, now, key);
  }
}

static void begin(struct session* s, uint32_t buffer,
                  enum st_exhausted_policy policy) {
  *s = (struct session){0};
  CHECK(st_sequence_init(&s->sequence, &arbiter, buffer, policy, &kThread));
}

static void end(struct session* s) {
  st_sequence_destroy(&s->sequence);
  st_identity_destroy(&s->ids);
  st_call_table_destroy(&s->calls);
}

static void* write_events(void* unused) {
  struct session lasting, changing;
  begin(&lasting, LASTING, ST_STALL);
  begin(&changing, CHANGING, ST_DROP);
  for (int i = 0; i < ROUNDS; i++) {
    write_instant(&lasting, names[i % NAMES]);
    write_call(&lasting, names[i % NAMES]);
    write_instant(&changing, names[i % NAMES]);
  }
  atomic_fetch_add(&written, lasting.sequence.events_written);
  end(&lasting);
  end(&changing);
  atomic_fetch_sub(&running, 1);
  return unused;
}

static void restart_second_session(void) {
  st_producer_endpoint_allow_buffer(&endpoint, CHANGING, false);
  st_buffer_table_remove(table, CHANGING);
  struct st_trace_buffer* buffer = ring(65536);
  if (!st_buffer_table_add(table, CHANGING, buffer))
    /* The id of the buffer is still in use, because a writer holds the old
     * buffer. */
    st_trace_buffer_destroy(buffer);
  st_producer_endpoint_allow_buffer(&endpoint, CHANGING, true);
}

static void run_generation(struct st_readback* readback, uint64_t* events) {
  pthread_t threads[THREADS];
  atomic_store(&running, THREADS);
  for (int i = 0; i < THREADS; i++)
    CHECK(!pthread_create(&threads[i], NULL, write_events, NULL));
  while (atomic_load(&running)) {
    restart_second_session();
    *events += read_events(readback, table, LASTING);
  }
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
}

static void threads_of_two_sessions_lose_no_event_of_the_first(void) {
  struct st_shm shm;
  uint8_t* memory = aligned_alloc(PAGE, PAGE * PAGES);
  memset(memory, 0, PAGE * PAGES);
  CHECK(st_shm_init(&shm, memory, PAGE * PAGES, PAGE));
  table = st_buffer_table_create();
  CHECK(st_buffer_table_add(table, LASTING, ring(64 << 20)));
  CHECK(st_producer_endpoint_init(&endpoint, 1, table));
  st_producer_endpoint_set_own_shm(&endpoint, &shm);
  st_producer_endpoint_allow_buffer(&endpoint, LASTING, true);
  CHECK(st_arbiter_init(&arbiter, &shm, &st_in_process_sink, &endpoint));
  struct st_readback* readback = st_readback_create(0);
  uint64_t events = 0;
  for (int i = 0; i < GENERATIONS; i++)
    run_generation(readback, &events);
  events += read_events(readback, table, LASTING);
  CHECK_EQ(atomic_load(&written), 2 * ROUNDS * THREADS * GENERATIONS);
  CHECK_EQ(events, atomic_load(&written));
  CHECK_EQ(st_readback_invalid_packets(readback), 0);
  CHECK_EQ(arbiter.live_writers, 0);
  st_readback_destroy(readback);
  st_arbiter_destroy(&arbiter);
  st_producer_endpoint_destroy(&endpoint);
  st_buffer_table_destroy(table);
  free(memory);
}

int main(void) {
  RUN(threads_of_two_sessions_lose_no_event_of_the_first);
  return 0;
}
