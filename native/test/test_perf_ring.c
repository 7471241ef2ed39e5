/* Tests of the ring buffer of an event, in memory of the test. */
#include "probes/perf_ring.h"

#include <linux/perf_event.h>

#include "perf_records.h"

enum { SIZE = 256 };

static struct perf_event_mmap_page page;
static uint8_t data[SIZE], copy[4 * SIZE];
static struct st_perf_ring ring;
static struct record_builder built;

/* Writes the built records at the head, as the kernel does. */
static void fill(void) {
  for (size_t i = 0; i < built.size; i++)
    data[(page.data_head + i) % SIZE] = built.data[i];
  page.data_head += built.size;
}

static void start_at(uint64_t position) {
  ring = (struct st_perf_ring){&page, data, SIZE, 0};
  page.data_head = page.data_tail = position;
  built.size = 0;
}

static size_t read_ring(size_t capacity, uint32_t samples) {
  return st_perf_ring_copy(&ring, copy, capacity, &samples);
}

static void records_are_whole_where_they_wrap_around(void) {
  start_at(10 * SIZE + SIZE - 24);
  put_name(&built, 0, 1, 2, "name", 3);
  fill();
  CHECK_EQ(read_ring(sizeof copy, 9), built.size);
  CHECK(!memcmp(copy, built.data, built.size));
  CHECK_EQ(page.data_tail, page.data_head);
  CHECK_EQ(read_ring(sizeof copy, 9), 0);
  CHECK_EQ(ring.damaged, 0);
}

static void what_has_no_room_stays_in_the_ring(void) {
  start_at(0);
  put_name(&built, 0, 1, 2, "a", 3);
  size_t first = built.size;
  put_name(&built, 0, 1, 2, "b", 3);
  fill();
  CHECK_EQ(read_ring(built.size - 1, 9), first);
  CHECK_EQ(page.data_tail, first);
  CHECK_EQ(read_ring(sizeof copy, 9), built.size - first);
}

static void samples_above_the_limit_stay_in_the_ring(void) {
  start_at(0);
  put_sample(&built, 1, 1, 1, 1, NULL, 0);
  size_t first = built.size;
  put_sample(&built, 1, 1, 1, 2, NULL, 0);
  fill();
  CHECK_EQ(read_ring(sizeof copy, 1), first);
  CHECK_EQ(read_ring(sizeof copy, 1), built.size - first);
}

static void damaged_records_empty_the_ring(void) {
  static const uint16_t kSizes[] = {0, 4, 12, 200};
  for (unsigned i = 0; i < sizeof kSizes / sizeof *kSizes; i++) {
    start_at(64);
    put_name(&built, 0, 1, 2, "a", 3);
    memcpy(built.data + 6, &kSizes[i], 2);
    fill();
    CHECK_EQ(read_ring(sizeof copy, 9), 0);
    CHECK_EQ(page.data_tail, page.data_head);
    CHECK_EQ(ring.damaged, 1);
  }
}

static void head_beyond_the_ring_is_damage(void) {
  start_at(0);
  page.data_head = SIZE + 8;
  CHECK_EQ(read_ring(sizeof copy, 9), 0);
  CHECK_EQ(ring.damaged, 1);
}

int main(void) {
  RUN(records_are_whole_where_they_wrap_around);
  RUN(what_has_no_room_stays_in_the_ring);
  RUN(samples_above_the_limit_stay_in_the_ring);
  RUN(damaged_records_empty_the_ring);
  RUN(head_beyond_the_ring_is_damage);
  return 0;
}
