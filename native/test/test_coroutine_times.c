/* Tests of coroutine times: begins and ends that events and samples have told. */
#include "core/coroutine_times.h"

#include "check.h"

#define FRAME UINT64_C(0x7f0000001000)
enum { LOOKED = 1000, SUSPENDED = 9000 };

static const char kCode, kOther;
static struct st_coroutine_times times;
static uint64_t unsure;

static uint64_t begin_of(const void* code) {
  return st_coroutine_begin(&times, FRAME, code, LOOKED, SUSPENDED, &unsure);
}

static uint64_t end_of(const void* code) {
  return st_coroutine_end(&times, FRAME, code, LOOKED, SUSPENDED, &unsure);
}

static void nothing_is_known_without_a_table(void) {
  struct st_coroutine_times none = {0};
  st_coroutine_began(&none, FRAME, &kCode, 2000);
  st_coroutine_seen(&none, FRAME, &kCode, 2000, 0, 3000);
  st_coroutine_watch(&none, FRAME, &kCode);
  st_coroutine_ended(&none, FRAME, &kCode, 3000);
  CHECK_EQ(st_coroutine_begin(&none, FRAME, &kCode, 0, SUSPENDED, &unsure), 0);
  CHECK_EQ(st_coroutine_end(&none, FRAME, &kCode, 0, SUSPENDED, &unsure), 0);
}

static void reported_times_are_exact(void) {
  CHECK(st_coroutine_times_init(&times));
  st_coroutine_began(&times, FRAME, &kCode, 2000);
  st_coroutine_seen(&times, FRAME, &kCode, 2500, 700, 4000);
  st_coroutine_ended(&times, FRAME, &kCode, 5000);
  CHECK_EQ(begin_of(&kCode), 2000);
  CHECK_EQ(unsure, 0);
  CHECK_EQ(end_of(&kCode), 5000);
  CHECK_EQ(unsure, 0);
  CHECK_EQ(begin_of(&kOther), 0);
  CHECK_EQ(end_of(&kOther), 0);
  st_coroutine_times_destroy(&times);
}

static void times_outside_the_range_belong_to_other_calls(void) {
  CHECK(st_coroutine_times_init(&times));
  st_coroutine_began(&times, FRAME, &kCode, LOOKED - 1);
  st_coroutine_ended(&times, FRAME, &kCode, SUSPENDED + 1);
  CHECK_EQ(begin_of(&kCode), 0);
  CHECK_EQ(end_of(&kCode), 0);
  st_coroutine_times_destroy(&times);
}

static void samples_tell_the_accuracy(void) {
  CHECK(st_coroutine_times_init(&times));
  st_coroutine_seen(&times, FRAME, &kCode, 3000, 700, 4000);
  CHECK_EQ(begin_of(&kCode), 3000);
  CHECK_EQ(unsure, 700);
  st_coroutine_seen(&times, FRAME, &kCode, 3000, 7000, 4000);
  CHECK_EQ(begin_of(&kCode), 3000);
  CHECK_EQ(unsure, 3000 - LOOKED);
  CHECK_EQ(end_of(&kCode), 4000);
  CHECK_EQ(unsure, SUSPENDED - 4000);
  st_coroutine_times_destroy(&times);
}

static void samples_of_a_later_call_do_not_tell_the_end(void) {
  CHECK(st_coroutine_times_init(&times));
  st_coroutine_seen(&times, FRAME, &kCode, 3000, 700, 4000);
  CHECK_EQ(end_of(&kCode), 0);
  st_coroutine_seen(&times, FRAME, &kCode, 0, 0, 5000);
  st_coroutine_began(&times, FRAME, &kCode, 2000);
  CHECK_EQ(end_of(&kCode), 0);
  st_coroutine_times_destroy(&times);
}

static void end_of_a_watched_call_outlives_later_calls_at_its_address(void) {
  CHECK(st_coroutine_times_init(&times));
  st_coroutine_watch(&times, FRAME, &kCode);
  st_coroutine_ended(&times, FRAME, &kCode, 2000);
  st_coroutine_began(&times, FRAME, &kCode, 3000);
  st_coroutine_ended(&times, FRAME, &kCode, 4000);
  st_coroutine_began(&times, FRAME, &kCode, 5000);
  CHECK_EQ(end_of(&kCode), 2000);
  CHECK_EQ(begin_of(&kCode), 5000);
  st_coroutine_watch(&times, FRAME, &kCode);
  CHECK_EQ(end_of(&kCode), 0);
  st_coroutine_times_destroy(&times);
}

static void generator_has_a_call_for_each_item(void) {
  CHECK(st_coroutine_times_init(&times));
  st_coroutine_began(&times, FRAME, &kCode, 2000);
  st_coroutine_continues(&times, FRAME, &kCode, 2500); /* after an await */
  CHECK_EQ(begin_of(&kCode), 2000);
  st_coroutine_ended(&times, FRAME, &kCode, 3000);
  st_coroutine_continues(&times, FRAME, &kCode, 4000);
  CHECK_EQ(begin_of(&kCode), 4000);
  CHECK_EQ(end_of(&kCode), 3000);
  st_coroutine_watch(&times, FRAME, &kCode);
  st_coroutine_continues(&times, FRAME, &kCode, 4500); /* after an await */
  CHECK_EQ(begin_of(&kCode), 4000);
  st_coroutine_ended(&times, FRAME, &kCode, 5000);
  CHECK_EQ(end_of(&kCode), 5000);
  st_coroutine_times_destroy(&times);
}

static void calls_with_the_same_slot_replace_each_other(void) {
  CHECK(st_coroutine_times_init(&times));
  for (uint64_t i = 0; i < 3 * ST_COROUTINE_SLOTS; i++)
    st_coroutine_began(&times, FRAME + 64 * i, &kCode, 2000 + i);
  uint64_t known = 0;
  for (uint64_t i = 0; i < 3 * ST_COROUTINE_SLOTS; i++) {
    uint64_t begin = st_coroutine_begin(&times, FRAME + 64 * i, &kCode, 0,
                                        UINT64_MAX, &unsure);
    CHECK(!begin || begin == 2000 + i);
    known += begin != 0;
  }
  CHECK(known > ST_COROUTINE_SLOTS / 2 && known <= ST_COROUTINE_SLOTS);
  st_coroutine_times_destroy(&times);
}

int main(void) {
  RUN(nothing_is_known_without_a_table);
  RUN(reported_times_are_exact);
  RUN(times_outside_the_range_belong_to_other_calls);
  RUN(samples_tell_the_accuracy);
  RUN(samples_of_a_later_call_do_not_tell_the_end);
  RUN(end_of_a_watched_call_outlives_later_calls_at_its_address);
  RUN(generator_has_a_call_for_each_item);
  RUN(calls_with_the_same_slot_replace_each_other);
  return 0;
}
