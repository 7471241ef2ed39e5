/* Tests of the functions that the time between two samples belongs to. */
#include "probes/time_owners.h"

#include "check.h"

enum { WAITER = 1, COMPUTER, OTHER };

static void run_of_a_running_thread_belongs_to_its_function(void) {
  struct st_time_owners o = {0};
  CHECK_EQ(st_owned_run(&o, 700, true), 700);
  CHECK_EQ(st_owned_run(&o, 300, true), 300);
}

static void run_before_a_wait_belongs_to_the_next_function_found_running(void) {
  struct st_time_owners o = {0};
  CHECK_EQ(st_owned_run(&o, 500, false), 0);
  CHECK_EQ(st_owned_run(&o, 0, false), 0);
  CHECK_EQ(st_owned_run(&o, 200, false), 0);
  CHECK_EQ(st_owned_run(&o, 40, true), 740);
  CHECK_EQ(st_owned_run(&o, 30, true), 30);
}

static void wait_belongs_to_the_function_that_waits(void) {
  struct st_time_owners o = {0};
  CHECK_EQ(st_wait_owner(&o, WAITER, true, true), WAITER);
}

static void wait_seen_in_a_computing_function_is_that_of_the_last_waiter(void) {
  struct st_time_owners o = {0};
  st_wait_owner(&o, WAITER, true, true);
  CHECK_EQ(st_wait_owner(&o, COMPUTER, false, false), WAITER);
}

static void function_that_has_waited_owns_later_waits_too(void) {
  struct st_time_owners o = {0};
  CHECK_EQ(st_wait_owner(&o, WAITER, false, true), WAITER);
  CHECK_EQ(st_wait_owner(&o, OTHER, false, true), OTHER);
}

static void function_that_got_no_cpu_once_owns_no_later_waits(void) {
  struct st_time_owners o = {0};
  CHECK_EQ(st_wait_owner(&o, COMPUTER, true, false), COMPUTER);
  CHECK_EQ(st_wait_owner(&o, WAITER, false, true), WAITER);
  CHECK_EQ(st_wait_owner(&o, COMPUTER, false, false), WAITER);
}

static void wait_belongs_to_the_function_seen_if_no_waiter_is_known(void) {
  struct st_time_owners o = {0};
  CHECK_EQ(st_wait_owner(&o, COMPUTER, false, false), COMPUTER);
  CHECK_EQ(o.waited_in, 0);
}

int main(void) {
  RUN(run_of_a_running_thread_belongs_to_its_function);
  RUN(run_before_a_wait_belongs_to_the_next_function_found_running);
  RUN(wait_belongs_to_the_function_that_waits);
  RUN(wait_seen_in_a_computing_function_is_that_of_the_last_waiter);
  RUN(function_that_has_waited_owns_later_waits_too);
  RUN(function_that_got_no_cpu_once_owns_no_later_waits);
  RUN(wait_belongs_to_the_function_seen_if_no_waiter_is_known);
  return 0;
}
