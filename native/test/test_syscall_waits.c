/* Tests of system calls that wait: events of two CPUs, in pages. */
#include "probes/syscall_waits.h"

#include "ftrace_pages.h"

enum {
  ENTER = 443,
  EXIT = 442,
  READ = 0,
  WRITE = 1,
  CLOSE = 3,
  POLL = 7,
  OTHER = 9
};

static const uint8_t kKinds[] = {
    [READ] = ST_SYSCALL_WAIT | ST_SYSCALL_USES_FD | ST_SYSCALL_READS,
    [WRITE] = ST_SYSCALL_WAIT | ST_SYSCALL_USES_FD,
    [CLOSE] = ST_SYSCALL_TOLD,
    [POLL] = ST_SYSCALL_WAIT | ST_SYSCALL_POLL,
};
static struct st_syscall_waits waits;
static struct st_syscall call;
static struct page_builder page;

static void start(void) {
  waits = (struct st_syscall_waits){.kinds = kKinds,
                                    .kind_count = sizeof kKinds,
                                    .enter_id = ENTER,
                                    .exit_id = EXIT,
                                    .min_ns = 100,
                                    .hidden_tid = 4};
  CHECK(st_syscall_waits_init(&waits));
}

static void enter(int32_t tid, uint32_t delta, uint64_t number, uint64_t first,
                  uint64_t second) {
  const uint64_t fields[7] = {number, first, second};
  page_event(&page, delta, ENTER, tid, fields, sizeof fields);
}

static void leave(int32_t tid, uint32_t delta, uint64_t number,
                  int64_t result) {
  const int64_t fields[] = {(int64_t)number, result};
  page_event(&page, delta, EXIT, tid, fields, sizeof fields);
}

static void add(uint64_t flags) {
  page_end(&page, flags);
  st_syscall_waits_add_page(&waits, page.data, TEST_PAGE);
}

/* Returns whether a call is told; leaves out new threads. */
static bool next(void) {
  while (st_syscall_waits_next(&waits, &call)) {
    if (call.number != ST_SYSCALL_NEW_THREAD)
      return true;
  }
  return false;
}

static void new_thread_is_told_once(void) {
  start();
  page_begin(&page, 1000);
  enter(5, 0, READ, 3, 64);
  leave(5, 1, READ, 64);
  enter(5, 1, READ, 3, 64);
  add(0);
  st_syscall_waits_sort(&waits, 5000);
  CHECK(st_syscall_waits_next(&waits, &call));
  CHECK_EQ(call.number, ST_SYSCALL_NEW_THREAD);
  CHECK_EQ(call.tid, 5);
  CHECK(!st_syscall_waits_next(&waits, &call));
  st_syscall_waits_free(&waits);
}

static void call_that_lasts_is_told(void) {
  start();
  page_begin(&page, 1000);
  enter(4, 0, READ, 3, 64);
  leave(4, 0, READ, 64);
  enter(5, 0, READ, 3, 64);
  leave(5, 99, READ, 64);
  enter(5, 1, READ, 4, 8);
  leave(5, 100, READ, -4);
  add(0);
  st_syscall_waits_sort(&waits, 5000);
  CHECK(next());
  CHECK_EQ(call.begin, 1100);
  CHECK_EQ(call.end, 1200);
  CHECK_EQ(call.tid, 5);
  CHECK_EQ(call.number, READ);
  CHECK_EQ(call.arguments[0], 4);
  CHECK_EQ(call.arguments[1], 8);
  CHECK_EQ(call.result, -4);
  CHECK(!next());
  st_syscall_waits_free(&waits);
}

static void call_may_end_on_another_cpu(void) {
  start();
  page_begin(&page, 3000);
  leave(5, 0, READ, 1);
  add(0);
  page_begin(&page, 1000);
  enter(5, 0, READ, 3, 1);
  add(0);
  st_syscall_waits_sort(&waits, 3000); /* The end is not complete yet. */
  CHECK(!next());
  st_syscall_waits_sort(&waits, 3001);
  CHECK(next());
  CHECK_EQ(call.end - call.begin, 2000);
  st_syscall_waits_free(&waits);
}

static void short_call_is_told_if_its_kind_says_so(void) {
  start();
  page_begin(&page, 1000);
  enter(5, 0, CLOSE, 3, 0);
  leave(5, 1, CLOSE, 0);
  enter(5, 1, OTHER, 3, 0);
  leave(5, 500, OTHER, 0);
  add(0);
  st_syscall_waits_sort(&waits, 5000);
  CHECK(next());
  CHECK_EQ(call.number, CLOSE);
  CHECK(!next());
  st_syscall_waits_free(&waits);
}

/* A poll() of `count` descriptors that has found one ready. */
static void poll(uint64_t count) {
  enter(5, 1, POLL, 0x7f00, count);
  leave(5, 500, POLL, 1);
}

static void poll_is_told_with_the_descriptor_that_is_used_next(void) {
  start();
  page_begin(&page, 1000);
  poll(1);
  enter(5, 10, WRITE, 12, 1);
  leave(5, 10, WRITE, 1);
  poll(2);
  enter(5, 10, READ, 13, 1);
  leave(5, 10, READ, 1);
  add(0);
  st_syscall_waits_sort(&waits, 5000);
  CHECK(next());
  CHECK_EQ(call.used_fd, 12);
  CHECK_EQ(call.end - call.begin, 500);
  CHECK(next());
  CHECK_EQ(call.used_fd, 13);
  CHECK(!next());
  CHECK(!st_syscall_waits_rest(&waits, &call));
  st_syscall_waits_free(&waits);
}

static void poll_has_no_descriptor_if_the_next_call_is_another(void) {
  start();
  page_begin(&page, 1000);
  poll(2);
  enter(5, 10, WRITE, 12, 1); /* It may write anywhere. */
  leave(5, 10, WRITE, 1);
  poll(1);
  enter(5, ST_SYSCALL_USE_NS, READ, 13, 1); /* It is much later. */
  add(0);
  st_syscall_waits_sort(&waits, UINT64_MAX);
  CHECK(next());
  CHECK_EQ(call.used_fd, -1);
  CHECK(next());
  CHECK_EQ(call.used_fd, -1);
  st_syscall_waits_free(&waits);
}

static void rest_has_the_calls_that_are_open_or_kept(void) {
  start();
  page_begin(&page, 1000);
  enter(5, 0, POLL, 0x7f00, 1);
  leave(5, 500, POLL, 1);
  enter(6, 0, READ, 3, 1);
  enter(7, 0, CLOSE, 3, 1);
  add(0);
  st_syscall_waits_sort(&waits, 5000);
  CHECK(!next());
  uint64_t ends = 0;
  int count = 0;
  while (st_syscall_waits_rest(&waits, &call)) {
    count++;
    ends += call.end;
  }
  CHECK_EQ(count, 2);
  CHECK_EQ(ends, 1500); /* The other one has not ended. */
  st_syscall_waits_free(&waits);
}

static void open_call_is_told_once_it_lasts(void) {
  start();
  page_begin(&page, 1000);
  enter(5, 0, READ, 3, 1);
  enter(6, 0, CLOSE, 3, 1);
  add(0);
  st_syscall_waits_sort(&waits, 5000);
  CHECK(!next());
  CHECK(!st_syscall_waits_open(&waits, 1099, &call));
  CHECK(st_syscall_waits_open(&waits, 1100, &call));
  CHECK_EQ(call.tid, 5);
  CHECK_EQ(call.end, 0);
  CHECK(!st_syscall_waits_open(&waits, 1100, &call));
  CHECK(!st_syscall_waits_open(&waits, 2000, &call));
  page_begin(&page, 3000);
  leave(5, 0, READ, 1);
  enter(5, 0, READ, 3, 1);
  add(0);
  st_syscall_waits_sort(&waits, 5000);
  CHECK(next());
  CHECK(!next());
  CHECK(st_syscall_waits_open(&waits, 4000, &call)); /* The second call. */
  st_syscall_waits_free(&waits);
}

static void where_events_are_lost_no_call_is_made_up(void) {
  start();
  page_begin(&page, 1000);
  enter(5, 0, READ, 3, 1);
  add(0);
  page_begin(&page, 2000);
  leave(5, 100, READ, 1);
  add(1u << 31);
  st_syscall_waits_sort(&waits, 5000);
  CHECK(!next());
  CHECK_EQ(waits.lost_events, 1);
  st_syscall_waits_free(&waits);
}

static void threads_beyond_the_limit_are_counted(void) {
  start();
  for (int32_t tid = 5; tid <= ST_SYSCALL_MAX_THREADS + 5; tid++) {
    page_begin(&page, 1000);
    enter(tid, 0, READ, 3, 1);
    add(0);
  }
  st_syscall_waits_sort(&waits, 5000);
  CHECK(!next());
  CHECK_EQ(waits.dropped_threads, 1);
  st_syscall_waits_free(&waits);
}

static void threads_without_a_call_make_room(void) {
  start();
  for (int32_t tid = 5; tid <= 2 * ST_SYSCALL_MAX_THREADS; tid++) {
    page_begin(&page, 1000 + (uint64_t)tid);
    enter(tid, 0, READ, 3, 1);
    leave(tid, 0, READ, 1);
    add(0);
    st_syscall_waits_sort(&waits, UINT64_MAX);
    CHECK(!next());
  }
  CHECK_EQ(waits.dropped_threads, 0);
  st_syscall_waits_free(&waits);
}

static void damaged_page_is_a_loss(void) {
  start();
  page_begin(&page, 1000);
  enter(5, 0, READ, 3, 1);
  page_u32(&page, 0); /* A record without a length. */
  add(0);
  st_syscall_waits_sort(&waits, 5000);
  CHECK(!next());
  CHECK_EQ(waits.lost_events, 1);
  st_syscall_waits_free(&waits);
}

int main(void) {
  RUN(new_thread_is_told_once);
  RUN(call_that_lasts_is_told);
  RUN(call_may_end_on_another_cpu);
  RUN(short_call_is_told_if_its_kind_says_so);
  RUN(poll_is_told_with_the_descriptor_that_is_used_next);
  RUN(poll_has_no_descriptor_if_the_next_call_is_another);
  RUN(rest_has_the_calls_that_are_open_or_kept);
  RUN(open_call_is_told_once_it_lasts);
  RUN(where_events_are_lost_no_call_is_made_up);
  RUN(threads_beyond_the_limit_are_counted);
  RUN(threads_without_a_call_make_room);
  RUN(damaged_page_is_a_loss);
  return 0;
}
