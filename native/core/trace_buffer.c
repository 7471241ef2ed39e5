#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trace_buffer_internal.h"

static struct st_trace_buffer* give_up(struct st_trace_buffer* b) {
  st_trace_buffer_destroy(b);
  return NULL;
}

struct st_trace_buffer* st_trace_buffer_adopt(void* mapping,
                                              size_t mapping_size, size_t size,
                                              enum st_fill_policy policy) {
  struct st_trace_buffer* b = calloc(1, sizeof *b);
  if (!b) {
    munmap(mapping, mapping_size);
    return NULL;
  }
  pthread_mutex_init(&b->mutex, NULL);
  pthread_mutex_init(&b->signal_mutex, NULL);
  b->mapping = mapping;
  b->mapping_size = mapping_size;
  b->header = mapping;
  b->producers = (struct st_producer_identity*)(b->mapping + ST_RING_PAGE);
  b->ring = b->mapping + ST_RING_OFFSET;
  b->size = size;
  b->policy = policy;
  b->eventfd = ST_NO_FD;
  atomic_init(&b->unread, 0);
  atomic_init(&b->watermark, UINT64_MAX);
  b->bounce = malloc(ST_MAX_RECORD);
  b->reader.scratch = malloc(ST_MAX_RECORD + ST_READ_SLACK);
  if (!b->bounce || !b->reader.scratch || !st_index_init(&b->index))
    return give_up(b);
  return b;
}

/* Maps the memory of a buffer.  A file gets all its disk space at once, so a
 * full disk causes an error here, rather than a SIGBUS at a later store. */
static void* map(size_t size, int fd) {
  int protection = PROT_READ | PROT_WRITE;
  if (fd < 0)
    return mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (ftruncate(fd, 0))
    return MAP_FAILED;
  int error = posix_fallocate(fd, 0, (off_t)size);
  if (error) {
    errno = error;
    return MAP_FAILED;
  }
  return mmap(NULL, size, protection, MAP_SHARED, fd, 0);
}

/* Asks the kernel for huge pages.  The page faults at the first use of memory
 * are a large part of an event's cost; with huge pages they take half the time
 * or less.  A kernel without huge pages ignores this. */
static void use_huge_pages(struct st_trace_buffer* b) {
  madvise(b->ring, b->size, MADV_HUGEPAGE);
}

struct st_trace_buffer* st_trace_buffer_create(size_t size,
                                               enum st_fill_policy policy,
                                               int fd) {
  /* The index stores a position in the ring as a 32-bit number of 16-byte
   * blocks, which limits the size. */
  if (!size || size > (size_t)UINT32_MAX * ST_RECORD_ALIGN - ST_RING_PAGE) {
    errno = EINVAL;
    return NULL;
  }
  size = (size + ST_RING_PAGE - 1) / ST_RING_PAGE * ST_RING_PAGE;
  size_t mapping_size = ST_RING_OFFSET + size;
  void* mapping = map(mapping_size, fd);
  if (mapping == MAP_FAILED)
    return NULL;
  struct st_ring_header* h = mapping;
  h->version = ST_RING_VERSION;
  h->policy = (uint32_t)policy;
  h->ring_size = size;
  memcpy(h->magic, ST_RING_MAGIC, sizeof h->magic);
  struct st_trace_buffer* b =
      st_trace_buffer_adopt(mapping, mapping_size, size, policy);
  if (b)
    b->is_file = fd >= 0;
  if (b && fd < 0)
    use_huge_pages(b);
  return b;
}

void st_trace_buffer_destroy(struct st_trace_buffer* b) {
  if (!b)
    return;
  st_index_destroy(&b->index);
  st_writer_stats_destroy(&b->writers);
  free(b->reader.whole);
  free(b->reader.scratch);
  free(b->bounce);
  munmap(b->mapping, b->mapping_size);
  pthread_mutex_destroy(&b->signal_mutex);
  pthread_mutex_destroy(&b->mutex);
  free(b);
}

void st_trace_buffer_set_producer(struct st_trace_buffer* b, uint16_t producer,
                                  uint32_t uid, int32_t pid) {
  pthread_mutex_lock(&b->mutex);
  b->producers[producer].uid = uid;
  b->producers[producer].pid = pid;
  b->producers[producer].machine_id = 0;
  pthread_mutex_unlock(&b->mutex);
}

void st_trace_buffer_set_machine(struct st_trace_buffer* b, uint16_t producer,
                                 uint32_t machine_id) {
  pthread_mutex_lock(&b->mutex);
  b->producers[producer].machine_id = machine_id;
  pthread_mutex_unlock(&b->mutex);
}

void st_trace_buffer_stats(struct st_trace_buffer* b,
                           struct st_buffer_stats* out) {
  pthread_mutex_lock(&b->mutex);
  *out = *st_stats(b);
  pthread_mutex_unlock(&b->mutex);
}

bool st_trace_buffer_writers(struct st_trace_buffer* b,
                             struct st_writer_stats* out) {
  pthread_mutex_lock(&b->mutex);
  bool copied = st_writer_stats_copy(out, &b->writers);
  pthread_mutex_unlock(&b->mutex);
  return copied;
}

size_t st_trace_buffer_size(const struct st_trace_buffer* b) {
  return b->size;
}

uint64_t st_trace_buffer_unread(const struct st_trace_buffer* b) {
  return atomic_load_explicit(&b->unread, memory_order_relaxed);
}

bool st_trace_buffer_congested(const struct st_trace_buffer* b) {
  uint64_t watermark =
      atomic_load_explicit(&b->watermark, memory_order_relaxed);
  if (watermark == UINT64_MAX)
    return false;
  uint64_t limit = st_trace_buffer_size(b) / 4 * 3;
  if (3 * watermark < limit)
    limit = 3 * watermark;
  return st_trace_buffer_unread(b) > limit;
}

void st_trace_buffer_set_watermark(struct st_trace_buffer* b, int eventfd,
                                   uint64_t watermark) {
  pthread_mutex_lock(&b->signal_mutex);
  b->eventfd = st_own_fd_from(eventfd);
  atomic_store_explicit(&b->watermark, eventfd < 0 ? UINT64_MAX : watermark,
                        memory_order_relaxed);
  pthread_mutex_unlock(&b->signal_mutex);
}
