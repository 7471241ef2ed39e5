#include "sorter.h"

#include <stdlib.h>
#include <string.h>

/* How often memory is returned to the system while the events are parsed. */
enum { TRIMS = 8 };

/* The words that events of each kind have: st_event. */
static const uint8_t kWords[ST_QUEUE_KINDS] = {
    [ST_QUEUE_PACKETS] = 2, [ST_QUEUE_EVENTS] = 1, [ST_QUEUE_FTRACE] = 1,
    [ST_QUEUE_SWITCH] = 3,  [ST_QUEUE_WAKING] = 3,
};

static uint32_t add_queue(struct st_sorter* s, enum st_queue_kind kind,
                          uint32_t cpu) {
  bool has_data = kind != ST_QUEUE_SWITCH && kind != ST_QUEUE_WAKING;
  *ST_PUSH(&s->queues) =
      (struct st_queue){.events = {.words = kWords[kind], .has_data = has_data},
                        .kind = kind,
                        .cpu = cpu,
                        .source = s->source};
  return s->queues.size - 1;
}

static struct st_queue* queue_of(struct st_sorter* s, enum st_queue_kind kind,
                                 uint32_t cpu) {
  struct st_source_queues* source = &s->sources.data[s->source];
  if (kind < ST_QUEUE_FTRACE)
    return &s->queues.data[source->first + kind];
  while (source->by_cpu[kind].size <= cpu) {
    uint32_t added = add_queue(s, kind, source->by_cpu[kind].size);
    *ST_PUSH(&source->by_cpu[kind]) = added;
  }
  return &s->queues.data[source->by_cpu[kind].data[cpu]];
}

void st_sorter_use_source(struct st_sorter* s, uint32_t source) {
  s->source = source;
  if (source < s->sources.size)
    return;
  *ST_PUSH(&s->sources) = (struct st_source_queues){.first = s->queues.size};
  for (uint32_t kind = 0; kind < ST_QUEUE_FTRACE; kind++)
    add_queue(s, (enum st_queue_kind)kind, 0);
}

void st_sorter_push_with(struct st_sorter* s, enum st_queue_kind kind,
                         uint32_t cpu, struct st_event event,
                         size_t tail_size) {
  st_event_list_add(&queue_of(s, kind, cpu)->events, &event, tail_size);
}

void st_sorter_push(struct st_sorter* s, enum st_queue_kind kind, uint32_t cpu,
                    struct st_event event) {
  st_sorter_push_with(s, kind, cpu, event, 0);
}

static int64_t rank(const struct st_queue* q, uint32_t i) {
  struct st_event e = st_event_list_get(&q->events, i);
  int64_t rank;
  memcpy(&rank, e.tail, sizeof rank);
  return rank;
}

/* What events are sorted by. */
struct key {
  int64_t ts, rank;
};

static struct key key_of(const struct st_queue* q, uint32_t i, bool by_rank) {
  return (struct key){st_event_list_ts(&q->events, i),
                      by_rank ? rank(q, i) : 0};
}

static bool is_after(struct key a, struct key b) {
  return a.ts > b.ts || (a.ts == b.ts && a.rank > b.rank);
}

/* Merges two sorted parts: from `a` to `middle`, and from there to `end`. */
static void merge(const struct st_queue* q, const uint32_t* a,
                  const uint32_t* middle, const uint32_t* end, uint32_t* to,
                  bool by_rank) {
  const uint32_t* b = middle;
  if (b < end &&
      is_after(key_of(q, middle[-1], by_rank), key_of(q, *b, by_rank))) {
    struct key x = key_of(q, *a, by_rank), y = key_of(q, *b, by_rank);
    while (a < middle && b < end) {
      bool right = is_after(x, y);
      *to++ = right ? *b++ : *a++;
      if (right && b < end)
        y = key_of(q, *b, by_rank);
      else if (!right && a < middle)
        x = key_of(q, *a, by_rank);
    }
  }
  memcpy(to, a, (size_t)(middle - a) * sizeof *to);
  memcpy(to + (middle - a), b, (size_t)(end - b) * sizeof *to);
}

/* The first events of parts that are sorted, and the number of events. */
typedef ST_ARRAY(uint32_t) part_starts;

/* Finds the parts of the queue that are sorted already: as long as the events
 * of a writer that come one after the other. */
static part_starts find_parts(const struct st_queue* q, bool by_rank) {
  part_starts starts = {0};
  struct key last = {INT64_MIN, INT64_MIN};
  *ST_PUSH(&starts) = 0;
  for (uint32_t i = 0; i < q->events.size; i++) {
    struct key key = key_of(q, i, by_rank);
    if (is_after(last, key))
      *ST_PUSH(&starts) = i;
    last = key;
  }
  *ST_PUSH(&starts) = q->events.size;
  return starts;
}

/* Merges each two parts.  The parts of `to` are half as many. */
static void merge_parts(const struct st_queue* q, const uint32_t* from,
                        uint32_t* to, part_starts* starts, bool by_rank) {
  uint32_t parts = starts->size - 1, merged = 0;
  uint32_t* at = starts->data;
  for (uint32_t i = 0; i < parts; i += 2) {
    uint32_t start = at[i], middle = at[i + 1];
    uint32_t end = i + 2 <= parts ? at[i + 2] : middle;
    merge(q, from + start, from + middle, from + end, to + start, by_rank);
    at[merged++] = start;
  }
  at[merged] = at[parts];
  starts->size = merged + 1;
}

/* Sorts events by timestamp, and then by rank if `by_rank`.  Equal events keep
 * their order. */
static void sort(struct st_queue* q, bool by_rank) {
  uint32_t n = q->events.size;
  part_starts starts = find_parts(q, by_rank);
  if (starts.size > 2) {
    q->order = st_memory_new(n * sizeof *q->order);
    uint32_t *from = q->order, *to = st_memory_new(n * sizeof *to);
    for (uint32_t i = 0; i < n; i++)
      from[i] = i;
    while (starts.size > 2) {
      merge_parts(q, from, to, &starts, by_rank);
      uint32_t* swapped = from;
      from = to;
      to = swapped;
    }
    for (uint32_t i = 0; i < n; i++)
      to[i] = from[n - i - 1];
    q->order = to;
    free(from);
  }
  free(starts.data);
}

static uint32_t next_number(const struct st_queue* q) {
  return q->order ? q->order[q->events.size - q->next - 1] : q->next;
}

static void free_queue(struct st_queue* q) {
  st_event_list_free(&q->events);
  free(q->order);
  *q = (struct st_queue){0};
}

static int64_t head(const struct st_sorter* s, uint32_t queue) {
  const struct st_queue* q = &s->queues.data[queue];
  return st_event_list_ts(&q->events, next_number(q));
}

static bool is_before(const struct st_sorter* s, uint32_t a, uint32_t b) {
  int64_t x = head(s, a), y = head(s, b);
  return x < y || (x == y && a < b);
}

/* Moves the queue at index i of the heap down, below queues that are
 * earlier. */
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

/* Returns the earliest time of the queues other than the first one of the
 * heap. */
static int64_t limit(const struct st_sorter* s) {
  int64_t limit = INT64_MAX;
  for (uint32_t i = 1; i <= 2 && i < s->heap.size; i++) {
    if (head(s, s->heap.data[i]) < limit)
      limit = head(s, s->heap.data[i]);
  }
  return limit;
}

/* Returns the memory of parsed events to the system, now and then. */
static void trim(struct st_sorter* s, struct st_queue* q) {
  if (++s->freed_blocks % s->trim_blocks)
    return;
  uint32_t left = q->events.size - q->next;
  uint32_t* order =
      q->order && left ? realloc(q->order, left * sizeof *order) : NULL;
  if (order)
    q->order = order;
  st_memory_trim();
}

/* Parses the events of a queue up to the time `end`, and frees blocks whose
 * events are parsed. */
static void parse_until(struct st_sorter* s, struct st_queue* q, int64_t end,
                        st_parse* parse, void* context) {
  while (q->next < q->events.size) {
    uint32_t number = next_number(q);
    if (st_event_list_ts(&q->events, number) > end)
      return;
    q->next++;
    if (q->next < q->events.size)
      st_event_list_prefetch(&q->events, next_number(q));
    struct st_event event = st_event_list_get(&q->events, number);
    parse(context, q, &event);
    if (st_event_list_done(&q->events, number))
      trim(s, q);
  }
}

/* Sorts the queues. */
static void prepare(struct st_sorter* s) {
  uint32_t blocks = 0;
  for (uint32_t i = 0; i < s->queues.size; i++) {
    struct st_queue* q = &s->queues.data[i];
    sort(q, s->has_ranks && q->kind == ST_QUEUE_JSON);
    blocks += q->events.blocks.size;
    if (q->events.size)
      *ST_PUSH(&s->heap) = i;
  }
  s->trim_blocks = blocks / TRIMS + 1;
}

void st_sorter_run(struct st_sorter* s, st_parse* parse, void* context) {
  prepare(s);
  for (uint32_t i = s->heap.size / 2; i-- > 0;)
    sift_down(s, i);
  while (s->heap.size) {
    struct st_queue* q = &s->queues.data[s->heap.data[0]];
    parse_until(s, q, limit(s), parse, context);
    if (q->next == q->events.size) {
      free_queue(q);
      s->heap.data[0] = s->heap.data[--s->heap.size];
    }
    if (s->heap.size)
      sift_down(s, 0);
  }
}

void st_sorter_free(struct st_sorter* s) {
  for (uint32_t i = 0; i < s->queues.size; i++)
    free_queue(&s->queues.data[i]);
  for (uint32_t i = 0; i < s->sources.size; i++) {
    for (uint32_t kind = 0; kind < ST_QUEUE_KINDS; kind++)
      free(s->sources.data[i].by_cpu[kind].data);
  }
  free(s->sources.data);
  free(s->queues.data);
  free(s->heap.data);
}
