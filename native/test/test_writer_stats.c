/* Tests of histograms by writer, alone and inside a trace buffer. */
#include "core/writer_stats.h"

#include "check.h"
#include "fake_chunk.h"
#include "random.h"

enum { ABOVE_LIMIT = ST_MAX_WRITER_STATS + 2000 };

static uint32_t bucket(const struct st_writer_histogram* w) {
  uint32_t found = UINT32_MAX;
  for (uint32_t i = 0; i < ST_HISTOGRAM_BUCKETS; i++) {
    if (!st_writer_histogram_of(w).counts[i])
      continue;
    CHECK_EQ(found, UINT32_MAX);
    found = i;
  }
  return found;
}

static void value_at_a_threshold_is_in_the_lower_bucket(void) {
  for (uint32_t i = 0; i < ST_HISTOGRAM_BUCKETS - 1; i++) {
    struct st_writer_stats s = {0};
    st_writer_stats_add(&s, 1, st_histogram_thresholds[i]);
    st_writer_stats_add(&s, 2, st_histogram_thresholds[i] + 1);
    CHECK_EQ(bucket(&s.writers[0]), i);
    CHECK_EQ(bucket(&s.writers[1]), i + 1);
    CHECK_EQ(st_writer_histogram_of(&s.writers[0]).sums[i],
             st_histogram_thresholds[i]);
    st_writer_stats_destroy(&s);
  }
}

static void writers_are_listed_separately_and_in_order(void) {
  struct st_writer_stats s = {0};
  for (uint32_t round = 0; round < 2; round++)
    for (uint32_t key = 0; key < 1000; key++)
      st_writer_stats_add(&s, key * 65537, key);
  CHECK_EQ(s.count, 1000);
  for (uint32_t key = 0; key < 1000; key++) {
    CHECK_EQ(s.writers[key].key, key * 65537);
    uint32_t at = bucket(&s.writers[key]);
    CHECK_EQ(st_writer_histogram_of(&s.writers[key]).counts[at], 2);
    CHECK_EQ(st_writer_histogram_of(&s.writers[key]).sums[at], 2 * key);
  }
  struct st_writer_stats copy = {0};
  CHECK(st_writer_stats_copy(&copy, &s));
  st_writer_stats_destroy(&s);
  CHECK_EQ(
      st_writer_histogram_of(st_writer_stats_find(&copy, 999 * 65537)).sums[4],
      2 * 999);
  CHECK_EQ(copy.count, 1000);
  st_writer_stats_destroy(&copy);
}

static void number_of_writers_is_limited(void) {
  struct st_writer_stats s = {0};
  for (uint32_t key = 0; key < ST_MAX_WRITER_STATS + 5; key++)
    st_writer_stats_add(&s, key, 1);
  CHECK_EQ(s.count, ST_MAX_WRITER_STATS);
  CHECK(!st_writer_stats_find(&s, ST_MAX_WRITER_STATS + 1));
  st_writer_stats_destroy(&s);
}

/* Adds two chunks for each of `count` writers, in a random order.  Checks that
 * all writers with a key below the limit are listed. */
static void fill(uint32_t count, uint32_t factor, uint64_t seed) {
  static uint32_t keys[ABOVE_LIMIT];
  for (uint32_t i = 0; i < count; i++) {
    uint32_t j = (uint32_t)random_below(&seed, i + 1);
    keys[i] = keys[j];
    keys[j] = (i + 1) * factor;
  }
  struct st_writer_stats s = {0};
  for (uint32_t round = 0; round < 2; round++)
    for (uint32_t i = 0; i < count; i++)
      st_writer_stats_add(&s, keys[i], i);
  uint32_t kept = count < ST_MAX_WRITER_STATS ? count : ST_MAX_WRITER_STATS;
  CHECK_EQ(s.count, kept);
  for (uint32_t i = 0; i < count; i++) {
    struct st_writer_histogram* w = st_writer_stats_find(&s, keys[i]);
    CHECK_EQ(w != NULL, i < kept);
    if (!w)
      continue;
    CHECK_EQ(w->key, keys[i]);
    CHECK_EQ(st_writer_histogram_of(w).sums[bucket(w)], 2 * i);
  }
  st_writer_stats_destroy(&s);
}

static void writers_beyond_the_limit_are_not_listed(void) {
  for (uint64_t seed = 1; seed <= 5; seed++) {
    fill(ABOVE_LIMIT, 1, seed);
    fill(ABOVE_LIMIT, 65537, seed);
  }
}

static void writers_with_equal_hashes_are_distinguished(void) {
  /* The hash multiplies a key by a constant.  Multiples of that constant's
   * multiplicative inverse fall into few buckets. */
  fill(2000, 0x0E8B2F51, 1);
}

static struct st_writer_stats writers_of(struct st_trace_buffer* b) {
  struct st_writer_stats s = {0};
  CHECK(st_trace_buffer_writers(b, &s));
  return s;
}

static void buffer_counts_its_committed_chunks(void) {
  struct st_trace_buffer* b = ring(65536);
  chunk(1, 7, 0);
  add(20, 'a');
  CHECK(scrape(b));
  struct st_writer_stats s = writers_of(b);
  CHECK_EQ(s.count, 1);
  CHECK_EQ(bucket(&s.writers[0]), 1);
  st_writer_stats_destroy(&s);
  CHECK(commit(b));
  CHECK(commit_one(b, 7, 1, 600, 'b'));
  s = writers_of(b);
  CHECK_EQ(s.count, 1);
  CHECK_EQ(s.writers[0].key, 1u << 16 | 7);
  CHECK_EQ(st_writer_histogram_of(&s.writers[0]).counts[1], 2);
  CHECK_EQ(st_writer_histogram_of(&s.writers[0]).sums[1], 42);
  CHECK_EQ(st_writer_histogram_of(&s.writers[0]).counts[4], 1);
  CHECK_EQ(st_writer_histogram_of(&s.writers[0]).sums[4], 602);
  st_writer_stats_destroy(&s);
  st_trace_buffer_destroy(b);
}

int main(void) {
  RUN(value_at_a_threshold_is_in_the_lower_bucket);
  RUN(writers_are_listed_separately_and_in_order);
  RUN(number_of_writers_is_limited);
  RUN(writers_beyond_the_limit_are_not_listed);
  RUN(writers_with_equal_hashes_are_distinguished);
  RUN(buffer_counts_its_committed_chunks);
  return 0;
}
