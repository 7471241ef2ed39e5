#include "arbiter.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
  MAX_STALLS = 300,
  /* The number of sleeps of the policy "stall briefly".  They add up to 0 + 8 +
   * 72 + 584 + 4680 + 37448 us. */
  BRIEF_STALLS = 6,
  MAX_STALL_US = 100000,
  EXHAUSTED_SEARCH_PAGES = 256,
  FIRST_WRITERS_CAPACITY = 64,
};

/* A page's bitmap has two bits for each of its 14 chunks.  This mask selects
 * the lower bit of each pair. */
#define STATE_LOW_BITS 0x05555555u

bool st_arbiter_init(struct st_arbiter* a, const struct st_shm* shm,
                     const struct st_commit_sink* sink, void* sink_self) {
  memset(a, 0, sizeof *a);
  a->shm = *shm;
  a->sink = sink;
  a->sink_self = sink_self;
  return pthread_mutex_init(&a->loss_mutex, NULL) == 0 &&
         pthread_mutex_init(&a->mutex, NULL) == 0;
}

void st_arbiter_destroy(struct st_arbiter* a) {
  const struct st_loss_marker* marker = atomic_load(&a->loss_marker);
  if (marker)
    marker->destroy(a);
  free(a->next_chunk_id);
  free(a->writer_in_use);
  pthread_mutex_destroy(&a->loss_mutex);
  pthread_mutex_destroy(&a->mutex);
}

void st_arbiter_report_loss(struct st_arbiter* a, uint32_t target_buffer) {
  const struct st_loss_marker* marker = atomic_load(&a->loss_marker);
  if (marker)
    marker->add(a, target_buffer);
}

void st_arbiter_disable(struct st_arbiter* a) {
  atomic_store(&a->disabled, true);
}

static bool is_disabled(struct st_arbiter* a) {
  return atomic_load_explicit(&a->disabled, memory_order_relaxed);
}

/* Enlarges next_chunk_id and writer_in_use until `id` is a valid index. */
static bool grow_writers(struct st_arbiter* a, uint32_t id) {
  if (id < a->writers_capacity)
    return true;
  uint32_t capacity = a->writers_capacity * 2;
  if (capacity < FIRST_WRITERS_CAPACITY)
    capacity = FIRST_WRITERS_CAPACITY;
  uint32_t* ids = realloc(a->next_chunk_id, capacity * sizeof *ids);
  if (!ids)
    return false;
  a->next_chunk_id = ids;
  uint8_t* in_use = realloc(a->writer_in_use, capacity);
  if (!in_use)
    return false;
  a->writer_in_use = in_use;
  uint32_t added = capacity - a->writers_capacity;
  memset(ids + a->writers_capacity, 0, added * sizeof *ids);
  memset(in_use + a->writers_capacity, 0, added);
  a->writers_capacity = capacity;
  return true;
}

static bool id_in_use(const struct st_arbiter* a, uint16_t id) {
  return id < a->writers_capacity && a->writer_in_use[id];
}

/* Returns the first free writer id after the id that was allocated last.
 * Returns 0 if no writer id is free. */
static uint16_t allocate_id(struct st_arbiter* a) {
  if (a->live_writers == ST_MAX_WRITER_ID)
    return 0;
  uint16_t id = a->last_writer_id;
  do {
    id = id == ST_MAX_WRITER_ID ? 1 : (uint16_t)(id + 1);
  } while (id_in_use(a, id));
  if (!grow_writers(a, id))
    return 0;
  a->writer_in_use[id] = 1;
  a->last_writer_id = id;
  a->live_writers++;
  return id;
}

uint16_t st_arbiter_add_writer(struct st_arbiter* a, uint32_t target_buffer,
                               uint32_t* chunk_id) {
  if (is_disabled(a))
    return 0;
  pthread_mutex_lock(&a->mutex);
  uint16_t id = allocate_id(a);
  if (id)
    *chunk_id = a->next_chunk_id[id];
  pthread_mutex_unlock(&a->mutex);
  if (id)
    a->sink->register_writer(a->sink_self, id, target_buffer);
  return id;
}

void st_arbiter_remove_writer(struct st_arbiter* a, uint16_t writer_id,
                              uint32_t next_chunk_id) {
  if (writer_id == 0 || is_disabled(a))
    return;
  /* The sink unregisters the writer before the writer id becomes free.
   * Otherwise unregister_writer() could unregister the next writer with this
   * id. */
  a->sink->unregister_writer(a->sink_self, writer_id);
  pthread_mutex_lock(&a->mutex);
  if (id_in_use(a, writer_id)) {
    a->writer_in_use[writer_id] = 0;
    a->next_chunk_id[writer_id] = next_chunk_id;
    a->live_writers--;
  }
  pthread_mutex_unlock(&a->mutex);
}

/* Returns the page layout with the fewest chunks in which the registered
 * writers use at most a quarter of all chunks of the memory. */
static enum st_page_layout choose_layout(const struct st_arbiter* a) {
  uint32_t layout = ST_PAGE_DIV1;
  while (layout < ST_PAGE_DIV14 &&
         (uint64_t)a->live_writers * 4 >
             (uint64_t)a->shm.num_pages * st_layout_chunks(layout))
    layout++;
  return (enum st_page_layout)layout;
}

bool st_arbiter_is_crowded(struct st_arbiter* a) {
  if (is_disabled(a))
    return false;
  pthread_mutex_lock(&a->mutex);
  uint32_t chunks = a->shm.num_pages * st_layout_chunks(ST_PAGE_DIV14);
  bool crowded = choose_layout(a) == ST_PAGE_DIV14 &&
                 a->taken > (a->exhausted ? 0 : chunks / 8);
  if (crowded)
    a->taken = 0;
  pthread_mutex_unlock(&a->mutex);
  return crowded;
}

/* Returns a bitmap in which bit 2i is set if chunk i of the page is free. */
static uint32_t free_chunks(uint32_t bitmap) {
  uint32_t chunks = st_layout_chunks(st_bitmap_layout(bitmap));
  uint32_t existing = ((1u << (2 * chunks)) - 1) & STATE_LOW_BITS;
  return existing & ~(bitmap | bitmap >> 1);
}

static bool take_from_page(struct st_arbiter* a, uint32_t page,
                           uint16_t writer_id, uint32_t chunk_id,
                           uint16_t packets, struct st_chunk* out) {
  uint32_t bitmap = st_page_bitmap(&a->shm, page);
  if (bitmap == 0) {
    if (a->sink->page_used)
      a->sink->page_used(a->sink_self, page);
    st_page_try_partition(&a->shm, page, choose_layout(a));
    bitmap = st_page_bitmap(&a->shm, page);
  }
  for (uint32_t left = free_chunks(bitmap); left; left &= left - 1) {
    uint32_t index = (uint32_t)__builtin_ctz(left) / 2;
    if (!st_chunk_try_acquire_for_writing(&a->shm, page, index, writer_id,
                                          chunk_id, packets, out))
      continue;
    bool more = (left & (left - 1)) != 0;
    a->next_page = more ? page : (page + 1) % a->shm.num_pages;
    return true;
  }
  return false;
}

/* Searches the shared memory for a free chunk.  The caller holds the mutex. */
static bool search(struct st_arbiter* a, uint16_t writer_id, uint32_t chunk_id,
                   uint16_t packets, struct st_chunk* out) {
  uint32_t pages = a->shm.num_pages;
  if (a->exhausted && pages > EXHAUSTED_SEARCH_PAGES)
    pages = EXHAUSTED_SEARCH_PAGES;
  for (uint32_t i = 0; i < pages; i++) {
    uint32_t page = a->next_page;
    if (take_from_page(a, page, writer_id, chunk_id, packets, out)) {
      a->exhausted = a->brief_stall_failed = false;
      a->taken++;
      return true;
    }
    a->next_page = (page + 1) % a->shm.num_pages;
  }
  a->exhausted = true;
  return false;
}

/* Sleeps, unless a signal ends the sleep earlier.  It does not call nanosleep():
 * `stretto record --io-waits` would show that as a sleep of the program. */
static void sleep_us(uint32_t us) {
  static const uint32_t never_changes;
  struct timespec t = {us / 1000000, (long)(us % 1000000) * 1000};
  int error = errno;
  syscall(SYS_futex, &never_changes, FUTEX_WAIT_PRIVATE, 0, &t, NULL, 0);
  errno = error;
}

static void pause_writer(const struct st_arbiter* a, uint32_t us) {
  (a->wait_hooks.sleep_us ? a->wait_hooks.sleep_us : sleep_us)(us);
}

/* Makes the calling writer sleep once, after the sink has sent its batched
 * commits: the service can free only chunks that were committed to it. */
static void stall(struct st_arbiter* a, uint32_t us) {
  const struct st_wait_hooks* hooks = &a->wait_hooks;
  a->sink->flush(a->sink_self);
  void* token = hooks->wait_begin ? hooks->wait_begin() : NULL;
  pause_writer(a, us);
  if (hooks->wait_end)
    hooks->wait_end(token);
}

static uint32_t next_interval(uint32_t us) {
  us = (us + 1) * 8;
  return us < MAX_STALL_US ? us : MAX_STALL_US;
}

void st_arbiter_wait_for_reader(struct st_arbiter* a, uint32_t target_buffer) {
  if (!a->sink->congested)
    return;
  uint32_t interval = 0;
  for (unsigned stalls = 0; stalls < MAX_STALLS && !is_disabled(a); stalls++) {
    if (!a->sink->congested(a->sink_self, target_buffer))
      return;
    stall(a, interval);
    interval = next_interval(interval);
  }
}

/* Returns whether a writer stops waiting for a chunk after this number of
 * sleeps.  The caller holds the mutex. */
static bool gives_up(struct st_arbiter* a, enum st_exhausted_policy policy,
                     unsigned stalls) {
  if (policy == ST_DROP)
    return true;
  if (policy == ST_STALL_BRIEFLY) {
    a->brief_stall_failed |= stalls == BRIEF_STALLS;
    return a->brief_stall_failed;
  }
  if (stalls < MAX_STALLS)
    return false;
  atomic_fetch_add(&a->stalls_exhausted, 1);
  return true;
}

bool st_arbiter_wait_at_end(struct st_arbiter* a, unsigned waits) {
  pthread_mutex_lock(&a->mutex);
  bool give_up = is_disabled(a) || gives_up(a, ST_STALL_BRIEFLY, waits);
  pthread_mutex_unlock(&a->mutex);
  if (give_up)
    return false;
  uint32_t interval = 0;
  for (unsigned i = 0; i < waits; i++)
    interval = next_interval(interval);
  a->sink->flush(a->sink_self);
  pause_writer(a, interval);
  return true;
}

struct st_chunk st_arbiter_get_chunk(struct st_arbiter* a, uint16_t writer_id,
                                     uint32_t chunk_id, uint16_t packets,
                                     enum st_exhausted_policy policy) {
  struct st_chunk chunk = {0};
  uint32_t interval = 0;
  for (unsigned stalls = 0; !is_disabled(a); stalls++) {
    pthread_mutex_lock(&a->mutex);
    bool found = search(a, writer_id, chunk_id, packets, &chunk);
    bool give_up = !found && gives_up(a, policy, stalls);
    pthread_mutex_unlock(&a->mutex);
    if (found)
      return chunk;
    if (give_up)
      break;
    stall(a, interval);
    interval = next_interval(interval);
  }
  return (struct st_chunk){0};
}

static bool will_be_patched(const struct st_chunk* chunk) {
  uint16_t packets = atomic_load(&st_chunk_header(chunk)->packets);
  return (packets >> ST_PACKETS_FLAGS_SHIFT) & ST_CHUNK_NEEDS_PATCHING;
}

/* Makes the next search begin at a page if the page is free.  In-process, a
 * page is free again as soon as its chunk is returned, and its memory is still
 * in the processor's cache. */
static void prefer_page(struct st_arbiter* a, uint32_t page) {
  if (st_page_bitmap(&a->shm, page))
    return;
  pthread_mutex_lock(&a->mutex);
  a->next_page = page;
  pthread_mutex_unlock(&a->mutex);
}

void st_arbiter_return_chunk(struct st_arbiter* a, const struct st_chunk* chunk,
                             uint32_t target_buffer) {
  if (is_disabled(a))
    return;
  if (will_be_patched(chunk) && a->sink->chunk_unpatched &&
      a->sink->chunk_unpatched(a->sink_self, chunk, target_buffer))
    return;
  if (!st_chunk_release_as_complete(&a->shm, chunk)) {
    atomic_fetch_add(&a->chunks_lost, 1);
    return;
  }
  a->sink->chunk_complete(a->sink_self, chunk, target_buffer);
  prefer_page(a, chunk->page);
}

/* Sends the ready patches of one chunk, the chunk of the first patch in the
 * list. */
static void send_front(struct st_arbiter* a, uint16_t writer_id,
                       uint32_t target_buffer, struct st_patch_list* patches) {
  struct st_chunk_patches out = {.writer_id = writer_id,
                                 .chunk_id = patches->front->chunk_id,
                                 .target_buffer = target_buffer,
                                 .first = patches->front};
  const struct st_patch* p = patches->front;
  for (; p && p->chunk_id == out.chunk_id && st_patch_is_ready(p); p = p->next)
    out.count++;
  out.has_more = p && p->chunk_id == out.chunk_id;
  a->sink->patch(a->sink_self, &out);
  for (uint32_t i = 0; i < out.count; i++)
    st_patch_list_pop(patches);
}

void st_arbiter_send_patches(struct st_arbiter* a, uint16_t writer_id,
                             uint32_t target_buffer,
                             struct st_patch_list* patches) {
  while (st_patch_list_has_ready(patches) && !is_disabled(a))
    send_front(a, writer_id, target_buffer, patches);
}
