#include "sorter.h"

#include <stdlib.h>

static uint32_t add_queue(struct st_sorter* s, enum st_queue_kind kind,
                          uint32_t cpu) {
  *ST_PUSH(&s->queues) = (struct st_queue){.kind = kind, .cpu = cpu};
  return s->queues.size - 1;
}

void st_sorter_push(struct st_sorter* s, enum st_queue_kind kind, uint32_t cpu,
                    struct st_event event) {
  while (s->queues.size < ST_QUEUE_FTRACE) /* These have fixed numbers. */
    add_queue(s, (enum st_queue_kind)s->queues.size, 0);
  uint32_t queue = kind;
  if (kind >= ST_QUEUE_FTRACE) {
    while (s->by_cpu[kind].size <= cpu) {
      uint32_t added = add_queue(s, kind, s->by_cpu[kind].size);
      *ST_PUSH(&s->by_cpu[kind]) = added;
    }
    queue = s->by_cpu[kind].data[cpu];
  }
  *ST_PUSH(&s->queues.data[queue].events) = event;
}

static bool is_after(const struct st_event* a, const struct st_event* b,
                     bool by_rank) {
  return a->ts > b->ts || (by_rank && a->ts == b->ts && a->rank > b->rank);
}

/* Sorts events by their timestamps; equal ones keep their order. */
static void sort(st_event_list* list, bool by_rank) {
  uint32_t n = list->size;
  bool is_sorted = true;
  for (uint32_t i = 1; i < n && is_sorted; i++)
    is_sorted = !is_after(&list->data[i - 1], &list->data[i], by_rank);
  if (is_sorted)
    return;
  struct st_event *from = list->data, *to = st_memory_new(n * sizeof *to);
  list->capacity = n;
  for (uint64_t width = 1; width < n; width *= 2) {
    for (uint64_t start = 0; start < n; start += 2 * width) {
      uint64_t a = start, middle = start + width < n ? start + width : n;
      uint64_t b = middle, end = middle + width < n ? middle + width : n;
      for (uint64_t i = start; i < end; i++) {
        bool left =
            a < middle && (b == end || !is_after(&from[a], &from[b], by_rank));
        to[i] = from[left ? a++ : b++];
      }
    }
    struct st_event* swapped = from;
    from = to;
    to = swapped;
  }
  list->data = from;
  free(to);
}

static int64_t head(const struct st_sorter* s, uint32_t queue) {
  const struct st_queue* q = &s->queues.data[queue];
  return q->events.data[q->next].ts;
}

static bool is_before(const struct st_sorter* s, uint32_t a, uint32_t b) {
  int64_t x = head(s, a), y = head(s, b);
  return x < y || (x == y && a < b);
}

/* Moves the queue at the heap's place i down, below earlier ones. */
static void sift_down(struct st_sorter* s, uint32_t i) {
  uint32_t* heap = s->heap.data;
  for (;;) {
    uint32_t first = i;
    for (uint32_t child = 2 * i + 1; child <= 2 * i + 2; child++) {
      if (child < s->heap.size && is_before(s, heap[child], heap[first]))
        first = child;
    }
    if (first == i)
      return;
    uint32_t queue = heap[i];
    heap[i] = heap[first];
    heap[first] = queue;
    i = first;
  }
}

/* Returns the time at which the first of the other queues begins. */
static int64_t limit(const struct st_sorter* s) {
  int64_t limit = INT64_MAX;
  for (uint32_t i = 1; i <= 2 && i < s->heap.size; i++) {
    if (head(s, s->heap.data[i]) < limit)
      limit = head(s, s->heap.data[i]);
  }
  return limit;
}

void st_sorter_run(struct st_sorter* s, st_parse* parse, void* context) {
  for (uint32_t i = 0; i < s->queues.size; i++) {
    bool by_rank = s->has_ranks && s->queues.data[i].kind == ST_QUEUE_JSON;
    sort(&s->queues.data[i].events, by_rank);
    if (s->queues.data[i].events.size)
      *ST_PUSH(&s->heap) = i;
  }
  for (uint32_t i = s->heap.size / 2; i-- > 0;)
    sift_down(s, i);
  while (s->heap.size) {
    struct st_queue* q = &s->queues.data[s->heap.data[0]];
    int64_t end = limit(s);
    while (q->next < q->events.size && q->events.data[q->next].ts <= end)
      parse(context, q, &q->events.data[q->next++]);
    if (q->next == q->events.size) {
      free(q->events.data);
      q->events = (st_event_list){0};
      s->heap.data[0] = s->heap.data[--s->heap.size];
      q->next = 0;
    }
    if (s->heap.size)
      sift_down(s, 0);
  }
}

void st_sorter_free(struct st_sorter* s) {
  for (uint32_t i = 0; i < s->queues.size; i++)
    free(s->queues.data[i].events.data);
  for (uint32_t i = 0; i < ST_QUEUE_KINDS; i++)
    free(s->by_cpu[i].data);
  free(s->queues.data);
  free(s->heap.data);
}
