#include "trace_buffer_internal.h"

#define SWAP(member)              \
  do {                            \
    void* p = &a->member;         \
    void* q = &b->member;         \
    swap(p, q, sizeof a->member); \
  } while (0)

static void swap(uint8_t* p, uint8_t* q, size_t size) {
  for (size_t i = 0; i < size; i++) {
    uint8_t byte = p[i];
    p[i] = q[i];
    q[i] = byte;
  }
}

static void exchange(struct st_trace_buffer* a, struct st_trace_buffer* b) {
  SWAP(mapping);
  SWAP(mapping_size);
  SWAP(header);
  SWAP(producers);
  SWAP(ring);
  SWAP(size);
  SWAP(policy);
  SWAP(full);
  SWAP(is_file);
  SWAP(pad_ahead);
  SWAP(bounce);
  SWAP(index);
  SWAP(writers);
  SWAP(reader);
  uint64_t unread = st_trace_buffer_unread(a);
  atomic_store_explicit(&a->unread, st_trace_buffer_unread(b),
                        memory_order_relaxed);
  atomic_store_explicit(&b->unread, unread, memory_order_relaxed);
}

void st_trace_buffer_exchange(struct st_trace_buffer* a,
                              struct st_trace_buffer* b) {
  if (a == b)
    return;
  /* The two mutexes are locked in the order of their addresses, so that two
   * exchanges cannot deadlock. */
  struct st_trace_buffer* first = (uintptr_t)a < (uintptr_t)b ? a : b;
  struct st_trace_buffer* second = first == a ? b : a;
  pthread_mutex_lock(&first->mutex);
  pthread_mutex_lock(&second->mutex);
  exchange(a, b);
  pthread_mutex_unlock(&second->mutex);
  pthread_mutex_unlock(&first->mutex);
}
