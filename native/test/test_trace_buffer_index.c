/* Tests of the index of a trace buffer, filled and emptied in many orders:
 * each lookup terminates, and finds what is present. */
#include "core/trace_buffer_internal.h"

#include "check.h"
#include "random.h"

enum { RECORDS = 20000, SEQUENCES = 3 * ST_MAX_EMPTY_SEQUENCES };

/* The model of the index: for each record number its sequence, or none. */
struct model {
  uint32_t key, chunk_id;
  bool linked;
};

static struct model model[RECORDS];
static struct st_index x;

static uint32_t key_of(uint32_t i) {
  return (i % 7 + 1) << 16 | (i + 1);
}

static bool find(uint32_t key, uint32_t chunk_id, uint32_t* number) {
  const struct st_sequence* s = st_sequence_find(&x, key);
  return s && st_record_find(&x, s, chunk_id, number);
}

static void link_record(uint32_t n, uint32_t key, uint32_t chunk_id) {
  CHECK(st_index_reserve(&x, 1));
  struct st_sequence* s = st_sequence_add(&x, key);
  CHECK(s);
  CHECK_EQ(s->key, key);
  CHECK_EQ(x.tail, n);
  st_index_push(&x)->chunk_id = chunk_id;
  CHECK(st_sequence_link(&x, s, n));
  model[n] = (struct model){key, chunk_id, true};
}

static void unlink_record(uint32_t n) {
  st_sequence_unlink(&x, n);
  model[n].linked = false;
}

static void check_all(uint32_t from, uint32_t to) {
  for (uint32_t n = from; n < to; n++) {
    uint32_t number = UINT32_MAX;
    bool found = find(model[n].key, model[n].chunk_id, &number);
    CHECK_EQ(found, model[n].linked);
    if (found)
      CHECK_EQ(number, n);
  }
}

/* Fills `numbers` with a random permutation of 0 to count - 1. */
static void order(uint64_t* seed, uint32_t* numbers, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    uint32_t j = (uint32_t)random_below(seed, i + 1);
    numbers[i] = numbers[j];
    numbers[j] = i;
  }
}

static void records_can_be_unlinked_in_any_order(void) {
  static uint32_t numbers[RECORDS];
  for (uint64_t seed = 1; seed <= 5; seed++) {
    uint64_t state = seed;
    CHECK(st_index_init(&x));
    for (uint32_t n = 0; n < RECORDS; n++)
      link_record(n, key_of((uint32_t)random_below(&state, 1000)), n);
    check_all(0, RECORDS);
    order(&state, numbers, RECORDS);
    for (uint32_t i = 0; i < RECORDS; i++) {
      unlink_record(numbers[i]);
      if (i % 4000 == 0)
        check_all(0, RECORDS);
    }
    check_all(0, RECORDS);
    CHECK(x.empty_count <= ST_MAX_EMPTY_SEQUENCES);
    st_index_destroy(&x);
  }
}

static void chunks_of_one_sequence_may_arrive_in_any_order(void) {
  enum { CHUNKS = 2000 };
  static uint32_t ids[CHUNKS];
  for (uint64_t seed = 1; seed <= 5; seed++) {
    uint64_t state = seed;
    CHECK(st_index_init(&x));
    order(&state, ids, CHUNKS);
    for (uint32_t n = 0; n < CHUNKS; n++)
      link_record(n, key_of(3), ids[n]);
    check_all(0, CHUNKS);
    struct st_sequence* s = st_sequence_find(&x, key_of(3));
    uint32_t n = s->first;
    for (uint32_t id = 0; id < CHUNKS; id++, n = st_record_at(&x, n)->next)
      CHECK_EQ(st_record_at(&x, n)->chunk_id, id);
    st_index_destroy(&x);
  }
}

static void oldest_empty_sequences_above_the_limit_are_dropped(void) {
  CHECK(st_index_init(&x));
  for (uint32_t n = 0; n < SEQUENCES; n++) {
    link_record(n, key_of(n), 0);
    unlink_record(n);
    CHECK(x.empty_count <= ST_MAX_EMPTY_SEQUENCES);
    CHECK(st_sequence_find(&x, key_of(n)));
  }
  for (uint32_t n = 0; n < SEQUENCES; n++) {
    bool kept = n >= SEQUENCES - x.empty_count;
    CHECK_EQ(st_sequence_find(&x, key_of(n)) != NULL, kept);
  }
  CHECK(x.sequence_count <= ST_MAX_EMPTY_SEQUENCES + 1);
  st_index_destroy(&x);
}

static void dropped_sequences_can_be_added_again(void) {
  uint64_t seed = 4;
  CHECK(st_index_init(&x));
  for (uint32_t n = 0; n < RECORDS; n++) {
    uint32_t key = key_of((uint32_t)random_below(&seed, SEQUENCES));
    link_record(n, key, n);
    CHECK_EQ(st_sequence_find(&x, key)->records, 1);
    unlink_record(n);
    CHECK(!find(key, n, &(uint32_t){0}));
  }
  CHECK(x.sequence_count <= ST_MAX_EMPTY_SEQUENCES + 1);
  st_index_destroy(&x);
}

int main(void) {
  RUN(records_can_be_unlinked_in_any_order);
  RUN(chunks_of_one_sequence_may_arrive_in_any_order);
  RUN(oldest_empty_sequences_above_the_limit_are_dropped);
  RUN(dropped_sequences_can_be_added_again);
  return 0;
}
