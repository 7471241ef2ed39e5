#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "clock.h"
#include "trace_buffer_internal.h"

/* MAX_OUT_OF_ORDER: how many entries a late chunk may be behind the newest
 * record of its sequence.  FIRST_CAPACITY: the initial size of the arrays, in
 * entries. */
enum { ST_MAX_OUT_OF_ORDER = 4096, ST_FIRST_CAPACITY = 64 };

static uint32_t hash(const struct st_index* x, uint64_t key) {
  uint64_t h = key ^ x->seed;
  h *= 0x9E3779B97F4A7C15u;
  h ^= h >> 32;
  h *= 0xD6E8FEB86659FD93u;
  return (uint32_t)(h >> 32);
}

bool st_index_init(struct st_index* x) {
  memset(x, 0, sizeof *x);
  if (getrandom(&x->seed, sizeof x->seed, GRND_NONBLOCK) != sizeof x->seed)
    x->seed = st_boottime_ns() * 0x9E3779B97F4A7C15u;
  return st_index_reserve(x, 1);
}

void st_index_destroy(struct st_index* x) {
  free(x->records);
  free(x->record_buckets);
  free(x->sequences);
  free(x->sequence_buckets);
}

static void* copy_array(const void* from, size_t size) {
  void* to = malloc(size ? size : 1);
  if (to && size)
    memcpy(to, from, size);
  return to;
}

bool st_index_copy(struct st_index* to, const struct st_index* from) {
  *to = *from;
  size_t n = from->capacity, m = from->sequence_capacity;
  to->records = copy_array(from->records, n * sizeof *to->records);
  to->record_buckets =
      copy_array(from->record_buckets, n * sizeof *to->record_buckets);
  to->sequences = copy_array(from->sequences, m * sizeof *to->sequences);
  to->sequence_buckets =
      copy_array(from->sequence_buckets, m * sizeof *to->sequence_buckets);
  return to->records && to->record_buckets && to->sequences &&
         to->sequence_buckets;
}

static uint32_t* record_bucket(const struct st_index* x, uint32_t sequence,
                               uint32_t chunk_id) {
  uint64_t key = (uint64_t)sequence << 32 | chunk_id;
  return &x->record_buckets[hash(x, key) & (x->capacity - 1)];
}

static void hash_record(struct st_index* x, uint32_t number) {
  struct st_record* r = st_record_at(x, number);
  uint32_t* bucket = record_bucket(x, r->sequence, r->chunk_id);
  r->hash_next = *bucket;
  *bucket = (number & (x->capacity - 1)) + 1;
}

static void unhash_record(struct st_index* x, uint32_t number) {
  struct st_record* r = st_record_at(x, number);
  uint32_t* link = record_bucket(x, r->sequence, r->chunk_id);
  uint32_t slot = number & (x->capacity - 1);
  while (*link != slot + 1)
    link = &x->records[*link - 1].hash_next;
  *link = r->hash_next;
}

bool st_record_find(const struct st_index* x, const struct st_sequence* s,
                    uint32_t chunk_id, uint32_t* number) {
  uint32_t sequence = (uint32_t)(s - x->sequences);
  uint32_t slot = *record_bucket(x, sequence, chunk_id);
  for (; slot; slot = x->records[slot - 1].hash_next) {
    const struct st_record* r = &x->records[slot - 1];
    if (r->sequence != sequence || r->chunk_id != chunk_id)
      continue;
    *number = x->head + ((slot - 1 - x->head) & (x->capacity - 1));
    return true;
  }
  return false;
}

static bool grow_records(struct st_index* x, uint32_t capacity) {
  struct st_record* records = malloc(capacity * sizeof *records);
  uint32_t* buckets = calloc(capacity, sizeof *buckets);
  if (!records || !buckets) {
    free(records);
    free(buckets);
    return false;
  }
  for (uint32_t n = x->head; n != x->tail; n++)
    records[n & (capacity - 1)] = *st_record_at(x, n);
  free(x->records);
  free(x->record_buckets);
  x->records = records;
  x->record_buckets = buckets;
  x->capacity = capacity;
  for (uint32_t n = x->head; n != x->tail; n++)
    if (st_record_at(x, n)->sequence != ST_NO_SEQUENCE)
      hash_record(x, n);
  return true;
}

bool st_index_reserve(struct st_index* x, uint32_t more) {
  uint32_t needed = x->tail - x->head + more;
  uint32_t capacity = x->capacity ? x->capacity : ST_FIRST_CAPACITY;
  while (capacity < needed) {
    if (capacity >> 30)
      return false;
    capacity *= 2;
  }
  return capacity == x->capacity || grow_records(x, capacity);
}

struct st_record* st_index_push(struct st_index* x) {
  struct st_record* r = st_record_at(x, x->tail++);
  memset(r, 0, sizeof *r);
  r->sequence = ST_NO_SEQUENCE;
  return r;
}

static uint32_t* sequence_bucket(const struct st_index* x, uint32_t key) {
  return &x->sequence_buckets[hash(x, key) & (x->sequence_capacity - 1)];
}

struct st_sequence* st_sequence_find(struct st_index* x, uint32_t key) {
  if (!x->sequence_capacity)
    return NULL;
  uint32_t i = *sequence_bucket(x, key);
  while (i && x->sequences[i - 1].key != key)
    i = x->sequences[i - 1].hash_next;
  return i ? &x->sequences[i - 1] : NULL;
}

static void hash_sequence(struct st_index* x, uint32_t i) {
  uint32_t* bucket = sequence_bucket(x, x->sequences[i - 1].key);
  x->sequences[i - 1].hash_next = *bucket;
  *bucket = i;
}

/* Doubles the array of sequences.  Called when all entries of the array are in
 * use. */
static bool grow_sequences(struct st_index* x) {
  uint32_t capacity =
      x->sequence_capacity ? 2 * x->sequence_capacity : ST_FIRST_CAPACITY;
  uint32_t* buckets = calloc(capacity, sizeof *buckets);
  struct st_sequence* sequences =
      buckets ? realloc(x->sequences, capacity * sizeof *sequences) : NULL;
  if (!sequences) {
    free(buckets);
    return false;
  }
  free(x->sequence_buckets);
  x->sequences = sequences;
  x->sequence_buckets = buckets;
  x->sequence_capacity = capacity;
  for (uint32_t i = 1; i <= x->sequence_count; i++)
    hash_sequence(x, i);
  return true;
}

static void add_empty(struct st_index* x, struct st_sequence* s) {
  uint32_t i = (uint32_t)(s - x->sequences) + 1;
  s->older = x->newest_empty;
  s->newer = 0;
  if (s->older)
    x->sequences[s->older - 1].newer = i;
  else
    x->oldest_empty = i;
  x->newest_empty = i;
  x->empty_count++;
}

static void remove_empty(struct st_index* x, struct st_sequence* s) {
  if (s->older)
    x->sequences[s->older - 1].newer = s->newer;
  else
    x->oldest_empty = s->newer;
  if (s->newer)
    x->sequences[s->newer - 1].older = s->older;
  else
    x->newest_empty = s->older;
  x->empty_count--;
}

static void forget_sequence(struct st_index* x, uint32_t i) {
  struct st_sequence* s = &x->sequences[i - 1];
  remove_empty(x, s);
  uint32_t* link = sequence_bucket(x, s->key);
  while (*link != i)
    link = &x->sequences[*link - 1].hash_next;
  *link = s->hash_next;
  s->hash_next = x->free_sequence;
  x->free_sequence = i;
}

struct st_sequence* st_sequence_add(struct st_index* x, uint32_t key) {
  struct st_sequence* found = st_sequence_find(x, key);
  if (found)
    return found;
  uint32_t i = x->free_sequence;
  if (i) {
    x->free_sequence = x->sequences[i - 1].hash_next;
  } else {
    if (x->sequence_count == x->sequence_capacity && !grow_sequences(x))
      return NULL;
    i = ++x->sequence_count;
  }
  struct st_sequence* s = &x->sequences[i - 1];
  memset(s, 0, sizeof *s);
  s->key = key;
  hash_sequence(x, i);
  add_empty(x, s);
  return s;
}

static void insert_after(struct st_index* x, struct st_sequence* s,
                         uint32_t place, uint32_t number) {
  struct st_record* r = st_record_at(x, number);
  struct st_record* before = st_record_at(x, place);
  r->prev = place;
  r->next = before->next;
  if (place == s->last)
    s->last = number;
  else
    st_record_at(x, r->next)->prev = number;
  before->next = number;
}

static void insert_first(struct st_index* x, struct st_sequence* s,
                         uint32_t number) {
  if (s->records) {
    st_record_at(x, number)->next = s->first;
    st_record_at(x, s->first)->prev = number;
  } else {
    remove_empty(x, s);
    s->last = number;
  }
  s->first = number;
}

bool st_sequence_link(struct st_index* x, struct st_sequence* s,
                      uint32_t number) {
  struct st_record* r = st_record_at(x, number);
  uint32_t place = s->last;
  if (!s->records ||
      st_is_before(r->chunk_id, st_record_at(x, s->first)->chunk_id)) {
    insert_first(x, s, number);
  } else {
    for (int steps = 0;
         st_is_before(r->chunk_id, st_record_at(x, place)->chunk_id);
         place = st_record_at(x, place)->prev) {
      if (++steps > ST_MAX_OUT_OF_ORDER || place == s->first)
        return false;
    }
    insert_after(x, s, place, number);
  }
  s->records++;
  r->sequence = (uint32_t)(s - x->sequences);
  hash_record(x, number);
  return true;
}

void st_sequence_unlink(struct st_index* x, uint32_t number) {
  struct st_record* r = st_record_at(x, number);
  struct st_sequence* s = st_sequence_of(x, r);
  unhash_record(x, number);
  r->sequence = ST_NO_SEQUENCE;
  if (number != s->last)
    st_record_at(x, r->next)->prev = r->prev;
  if (number != s->first)
    st_record_at(x, r->prev)->next = r->next;
  if (number == s->last)
    s->last = r->prev;
  if (number == s->first)
    s->first = r->next;
  if (--s->records)
    return;
  add_empty(x, s);
  if (x->empty_count <= ST_MAX_EMPTY_SEQUENCES)
    return;
  while (x->empty_count > ST_KEPT_EMPTY_SEQUENCES)
    forget_sequence(x, x->oldest_empty);
}

void st_sequence_replace(struct st_index* x, uint32_t old, uint32_t number) {
  struct st_record *from = st_record_at(x, old), *to = st_record_at(x, number);
  struct st_sequence* s = st_sequence_of(x, from);
  to->chunk_id = from->chunk_id;
  to->sequence = from->sequence;
  insert_after(x, s, old, number);
  s->records++;
  hash_record(x, number);
  st_sequence_unlink(x, old);
}

void st_sequence_note_gap(const struct st_index* x, struct st_sequence* s) {
  if (!(s->flags & ST_SEQUENCE_BEGUN))
    return;
  uint32_t id = st_record_at(x, s->first)->chunk_id;
  bool came_again = (s->flags & ST_SEQUENCE_MAY_GROW) && id == s->last_id;
  if (!came_again && id != s->last_id + 1)
    s->loss |= ST_LOSS_READ_GAP;
}
