#include "thread_list.h"

#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { THREADS = 8, ROUNDS = 500 };

/* A list with a record for each thread, under a lock, like the lists of
 * native/hooks. */
struct calls {
  struct st_thread_record thread;
  uint64_t events;
};

static _Thread_local struct calls* g_own;
static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t g_next_id = 1;
static uint64_t g_events, g_ended, g_of_parent;

static void forget_own(void) {
  g_own = NULL;
}

static void free_calls(struct st_thread_record* record, bool ended) {
  struct calls* calls = (struct calls*)record;
  g_events += calls->events;
  g_ended += ended;
  g_of_parent += !ended;
  free(calls);
}

static struct st_thread_list g_list = {.on_exit = forget_own,
                                       .free_record = free_calls};

static struct calls* make_calls(uint64_t thread_id) {
  st_thread_list_reap(&g_list);
  struct calls* calls = calloc(1, sizeof *calls);
  CHECK(calls);
  st_thread_list_add(&g_list, &calls->thread, thread_id);
  return calls;
}

static void set_up(void) {
  st_thread_list_init(&g_list);
  st_thread_list_init(&g_list);
  g_events = g_ended = g_of_parent = 0;
}

static void tear_down(void) {
  while (g_list.first) {
    g_list.first->claimed = false;
    st_thread_list_mark_ended(g_list.first);
    st_thread_list_reap(&g_list);
  }
}

static void* write_events(void* unused) {
  pthread_mutex_lock(&g_lock);
  CHECK(!g_own);
  uint64_t id = atomic_fetch_add(&g_next_id, 1);
  g_own = make_calls(id);
  st_thread_list_claim(&g_own->thread);
  CHECK(st_thread_list_find(&g_list, id) == &g_own->thread);
  pthread_mutex_unlock(&g_lock);
  /* No lock is needed, because only this thread accesses its own record. */
  g_own->events += 3;
  return unused;
}

static void* start_threads(void* unused) {
  for (int i = 0; i < ROUNDS; i++) {
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, write_events, NULL), 0);
    pthread_detach(thread);
  }
  return unused;
}

static void each_ended_thread_is_reaped_once_while_others_start(void) {
  set_up();
  pthread_t starters[THREADS];
  for (int i = 0; i < THREADS; i++)
    CHECK_EQ(pthread_create(&starters[i], NULL, start_threads, NULL), 0);
  for (int i = 0; i < THREADS; i++)
    pthread_join(starters[i], NULL);
  for (bool waiting = true; waiting;) {
    pthread_mutex_lock(&g_lock);
    st_thread_list_reap(&g_list);
    waiting = g_ended < THREADS * ROUNDS;
    pthread_mutex_unlock(&g_lock);
  }
  CHECK(!g_list.first);
  CHECK_EQ(g_events, 3 * THREADS * ROUNDS);
  CHECK_EQ(g_of_parent, 0);
}

static void record_of_running_thread_stays(void) {
  set_up();
  struct calls* calls = make_calls(7);
  st_thread_list_reap(&g_list);
  CHECK(st_thread_list_find(&g_list, 7) == &calls->thread);
  CHECK(!st_thread_list_find(&g_list, 8));
  tear_down();
}

static void record_marked_as_ended_is_not_found_and_is_freed(void) {
  set_up();
  struct calls* calls = make_calls(7);
  make_calls(8);
  st_thread_list_mark_ended(&calls->thread);
  CHECK(!st_thread_list_find(&g_list, 7));
  st_thread_list_reap(&g_list);
  CHECK_EQ(g_ended, 1);
  CHECK(st_thread_list_find(&g_list, 8));
  tear_down();
}

/* When a thread exits, its exit handler still writes to the thread's record. */
static void claimed_record_is_not_freed_before_its_thread_exits(void) {
  set_up();
  struct calls* calls = make_calls(7);
  st_thread_list_claim(&calls->thread);
  st_thread_list_mark_ended(&calls->thread);
  st_thread_list_reap(&g_list);
  CHECK_EQ(g_ended, 0);
  CHECK(st_thread_list_find(&g_list, 7) == &calls->thread);
  pthread_setspecific(g_list.key, NULL);
  tear_down();
}

static void forked_child_keeps_only_its_own_record(void) {
  set_up();
  g_own = make_calls(7);
  st_thread_list_claim(&g_own->thread);
  make_calls(8);
  make_calls(9);
  pid_t pid = fork();
  if (pid == 0) {
    st_thread_list_reap(&g_list);
    bool kept = g_list.first == &g_own->thread && !g_own->thread.next;
    _exit(kept && g_of_parent == 2 && g_ended == 0 ? 0 : 1);
  }
  int status;
  CHECK_EQ(waitpid(pid, &status, 0), pid);
  CHECK_EQ(status, 0);
  st_thread_list_reap(&g_list);
  CHECK(st_thread_list_find(&g_list, 8));
  pthread_setspecific(g_list.key, NULL);
  tear_down();
  g_own = NULL;
}

static void record_added_in_a_child_before_its_first_reap_is_kept(void) {
  set_up();
  make_calls(7);
  pid_t pid = fork();
  if (pid == 0) {
    struct calls* added = calloc(1, sizeof *added);
    st_thread_list_add(&g_list, &added->thread, 8);
    st_thread_list_reap(&g_list);
    bool kept = g_list.first == &added->thread && !added->thread.next;
    _exit(kept && g_of_parent == 1 && g_ended == 0 ? 0 : 1);
  }
  int status;
  CHECK_EQ(waitpid(pid, &status, 0), pid);
  CHECK_EQ(status, 0);
  tear_down();
}

static void claim_cancels_a_wrong_mark(void) {
  set_up();
  g_own = make_calls(7);
  st_thread_list_mark_ended(&g_own->thread);
  st_thread_list_claim(&g_own->thread);
  st_thread_list_reap(&g_list);
  CHECK(st_thread_list_find(&g_list, 7) == &g_own->thread);
  pthread_setspecific(g_list.key, NULL);
  tear_down();
  g_own = NULL;
}

int main(void) {
  RUN(record_of_running_thread_stays);
  RUN(record_marked_as_ended_is_not_found_and_is_freed);
  RUN(claimed_record_is_not_freed_before_its_thread_exits);
  RUN(forked_child_keeps_only_its_own_record);
  RUN(record_added_in_a_child_before_its_first_reap_is_kept);
  RUN(claim_cancels_a_wrong_mark);
  RUN(each_ended_thread_is_reaped_once_while_others_start);
  return 0;
}
