/* Tests of pending commits: the lists, their bound, and startup
 * reservations. */
#include "core/commit_pending.h"

#include <string.h>

#include "check.h"

static uint32_t reservation(uint32_t number) {
  return number << ST_RESERVATION_SHIFT;
}

static void test_target_without_a_reservation_is_the_buffer_itself(void) {
  struct st_commit_pending pending = {0};
  uint16_t buffer = 0;
  CHECK(st_commit_pending_resolve(&pending, 7, &buffer));
  CHECK_EQ(buffer, 7);
}

static void test_reservation_resolves_after_it_is_bound(void) {
  struct st_commit_pending pending = {0};
  uint16_t buffer = 0;
  CHECK(!st_commit_pending_resolve(&pending, reservation(3), &buffer));
  CHECK(st_commit_pending_bind(&pending, 3, 9));
  CHECK(st_commit_pending_resolve(&pending, reservation(3), &buffer));
  CHECK_EQ(buffer, 9);
  CHECK(!st_commit_pending_resolve(&pending, reservation(2), &buffer));
  CHECK(!st_commit_pending_resolve(&pending, reservation(4), &buffer));
  st_commit_pending_destroy(&pending);
}

static void test_second_binding_has_no_effect(void) {
  struct st_commit_pending pending = {0};
  uint16_t buffer = 1;
  /* This call binds the reservation to no buffer. */
  CHECK(st_commit_pending_bind(&pending, 1, 0));
  CHECK(st_commit_pending_bind(&pending, 1, 5));
  CHECK(st_commit_pending_resolve(&pending, reservation(1), &buffer));
  CHECK_EQ(buffer, 0);
  st_commit_pending_destroy(&pending);
}

static void test_binding_of_unknown_reservation_is_refused(void) {
  struct st_commit_pending pending = {0};
  CHECK(!st_commit_pending_bind(&pending, 0, 1));
  CHECK(!st_commit_pending_bind(&pending, ST_MAX_RESERVATION + 1, 1));
  CHECK_EQ(pending.lost_commits, 0);
  CHECK(st_commit_pending_bind(&pending, ST_MAX_RESERVATION, 1));
  st_commit_pending_destroy(&pending);
}

static void append_move(struct st_commit_pending* pending, uint32_t chunk_id) {
  struct st_pending_move move = {.chunk_id = chunk_id};
  uint8_t* p = st_commit_pending_reserve(pending, &pending->moves, sizeof move);
  CHECK(p);
  memcpy(p, &move, sizeof move);
  pending->moves.size += sizeof move;
}

static void test_moves_keep_their_order_while_the_list_grows(void) {
  enum { COUNT = 500 };
  struct st_commit_pending pending = {0};
  for (uint32_t i = 0; i < COUNT; i++)
    append_move(&pending, i);
  size_t count;
  const struct st_pending_move* moves =
      st_commit_pending_moves(&pending, &count);
  CHECK_EQ(count, COUNT);
  for (uint32_t i = 0; i < COUNT; i++)
    CHECK_EQ(moves[i].chunk_id, i);
  st_commit_pending_destroy(&pending);
}

static void test_commit_beyond_the_bound_is_counted_as_lost(void) {
  struct st_commit_pending pending = {0};
  CHECK(st_commit_pending_reserve(&pending, &pending.patches,
                                  ST_COMMIT_MAX_PENDING));
  pending.patches.size = ST_COMMIT_MAX_PENDING;
  CHECK(!st_commit_pending_reserve(&pending, &pending.patches, 1));
  CHECK_EQ(pending.lost_commits, 1);
  /* The other lists of pending commits are not affected. */
  append_move(&pending, 1);
  st_commit_pending_destroy(&pending);
}

int main(void) {
  RUN(test_target_without_a_reservation_is_the_buffer_itself);
  RUN(test_reservation_resolves_after_it_is_bound);
  RUN(test_second_binding_has_no_effect);
  RUN(test_binding_of_unknown_reservation_is_refused);
  RUN(test_moves_keep_their_order_while_the_list_grows);
  RUN(test_commit_beyond_the_bound_is_counted_as_lost);
  return 0;
}
