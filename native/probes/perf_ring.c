#include "probes/perf_ring.h"

#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "probes/perf_record.h"

bool st_perf_ring_map(struct st_perf_ring* r, int fd, size_t pages) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  void* map =
      mmap(NULL, (pages + 1) * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  *r = (struct st_perf_ring){0};
  if (map == MAP_FAILED)
    return false;
  r->page = map;
  r->data = (const uint8_t*)map + page;
  r->size = pages * page;
  return true;
}

void st_perf_ring_unmap(struct st_perf_ring* r) {
  if (r->page)
    munmap(r->page, (size_t)(r->data - (const uint8_t*)r->page) + r->size);
  r->page = NULL;
}

/* Copies bytes from a position in the ring, which may wrap around. */
static void copy_bytes(const struct st_perf_ring* r, uint64_t position,
                       uint8_t* out, size_t size) {
  size_t at = (size_t)(position % r->size);
  size_t first = r->size - at < size ? r->size - at : size;
  memcpy(out, r->data + at, first);
  memcpy(out + first, r->data, size - first);
}

/* Returns the header of the record at a position; its size is 0 if the record
 * is not within the `left` bytes. */
static struct perf_event_header header_at(const struct st_perf_ring* r,
                                          uint64_t position, uint64_t left) {
  struct perf_event_header h = {0};
  if (left < sizeof h)
    return h;
  copy_bytes(r, position, (uint8_t*)&h, sizeof h);
  if (h.size < sizeof h || h.size % 8 || h.size > left)
    h.size = 0;
  return h;
}

size_t st_perf_ring_copy(struct st_perf_ring* r, uint8_t* out, size_t capacity,
                         uint32_t* max_samples) {
  uint64_t head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
  uint64_t tail = r->page->data_tail;
  size_t done = 0;
  while (tail != head) {
    uint64_t left = head - tail;
    struct perf_event_header h = left <= r->size
                                     ? header_at(r, tail, left)
                                     : (struct perf_event_header){0};
    if (!h.size) {
      r->damaged++;
      tail = head;
      break;
    }
    bool is_sample = h.type == ST_PERF_SAMPLE;
    if (h.size > capacity - done || (is_sample && !*max_samples))
      break;
    copy_bytes(r, tail, out + done, h.size);
    /* The copied size must be the checked one, whoever writes to the ring. */
    memcpy(out + done, &h, sizeof h);
    done += h.size;
    tail += h.size;
    *max_samples -= is_sample;
  }
  __atomic_store_n(&r->page->data_tail, tail, __ATOMIC_RELEASE);
  return done;
}
