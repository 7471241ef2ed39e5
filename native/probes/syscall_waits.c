#include "probes/syscall_waits.h"

#include <stdlib.h>
#include <string.h>

#include "probes/ftrace_page.h"

enum { ENTER, EXIT, LOSS };

enum {
  NUMBER_AT = 8,
  VALUES_AT = 16,
  ENTER_SIZE = VALUES_AT + 2 * sizeof(uint64_t),
  EXIT_SIZE = VALUES_AT + sizeof(int64_t),
  FIRST_CAPACITY = 1024,
  SLOTS = 2 * ST_SYSCALL_MAX_THREADS,
};

struct st_syscall_event {
  uint64_t time;
  uint64_t values[2]; /* The arguments, or the result. */
  int32_t tid;
  uint16_t number;
  uint8_t type;
};

/* A thread's call: it is open, or has ended and waits for the next one. */
enum state { IDLE, OPEN, KEPT };

struct st_syscall_thread {
  struct st_syscall call;
  enum state state;
  bool
      is_told; /* The call is open, and st_syscall_waits_open() has reported it. */
};

bool st_syscall_waits_init(struct st_syscall_waits* w) {
  w->threads = calloc(ST_SYSCALL_MAX_THREADS, sizeof *w->threads);
  w->slots = calloc(SLOTS, sizeof *w->slots);
  return w->threads && w->slots;
}

void st_syscall_waits_free(struct st_syscall_waits* w) {
  free(w->threads);
  free(w->slots);
  free(w->events);
}

/* --- Reading ------------------------------------------------------------- */

static bool grow(struct st_syscall_waits* w) {
  size_t capacity =
      w->event_capacity ? 2 * w->event_capacity : (size_t)FIRST_CAPACITY;
  struct st_syscall_event* events =
      capacity > ST_SYSCALL_MAX_EVENTS
          ? NULL
          : realloc(w->events, capacity * sizeof *events);
  if (!events)
    return false;
  w->events = events;
  w->event_capacity = capacity;
  return true;
}

static void add(struct st_syscall_waits* w, struct st_syscall_event event) {
  if (w->event_count < w->event_capacity || grow(w)) {
    w->events[w->event_count++] = event;
    return;
  }
  w->lost_events++;
  if (w->event_count) /* There is none if memory is short. */
    w->events[w->event_count - 1].type = LOSS;
}

static uint8_t kind_of(const struct st_syscall_waits* w, uint64_t number) {
  return number < w->kind_count ? w->kinds[number] : 0;
}

static void add_record(struct st_syscall_waits* w,
                       const struct st_ftrace_record* r) {
  uint16_t id = st_ftrace_event_id(r);
  bool enters = id == w->enter_id;
  if ((!enters && id != w->exit_id) ||
      st_ftrace_event_pid(r) == w->hidden_tid ||
      r->size < (enters ? (size_t)ENTER_SIZE : (size_t)EXIT_SIZE))
    return;
  uint64_t number;
  memcpy(&number, r->data + NUMBER_AT, sizeof number);
  if (!kind_of(w, number))
    return;
  struct st_syscall_event e = {.time = r->time,
                               .tid = st_ftrace_event_pid(r),
                               .number = (uint16_t)number,
                               .type = enters ? ENTER : EXIT};
  memcpy(e.values, r->data + VALUES_AT,
         enters ? sizeof e.values : sizeof *e.values);
  add(w, e);
}

void st_syscall_waits_add_page(struct st_syscall_waits* w, const uint8_t* page,
                               size_t size) {
  struct st_ftrace_page p;
  struct st_ftrace_record record;
  st_ftrace_page_open(&p, page, size);
  if (p.lost_events) {
    w->lost_events++;
    add(w, (struct st_syscall_event){.time = p.time, .type = LOSS});
  }
  while (st_ftrace_page_next(&p, &record))
    add_record(w, &record);
  if (p.status != ST_FTRACE_OK) {
    w->lost_events++;
    add(w, (struct st_syscall_event){.time = p.time, .type = LOSS});
  }
}

/* --- Order --------------------------------------------------------------- */

static int by_time(const void* a, const void* b) {
  const struct st_syscall_event *first = a, *second = b;
  return (first->time > second->time) - (first->time < second->time);
}

void st_syscall_waits_sort(struct st_syscall_waits* w, uint64_t until) {
  w->event_count -= w->next_event;
  if (w->event_count) {
    memmove(w->events, w->events + w->next_event,
            w->event_count * sizeof *w->events);
    qsort(w->events, w->event_count, sizeof *w->events, by_time);
  }
  w->next_event = w->sorted_count = 0;
  while (w->sorted_count < w->event_count &&
         w->events[w->sorted_count].time < until)
    w->sorted_count++;
}

/* --- Threads ------------------------------------------------------------- */

static uint16_t* slot_of(const struct st_syscall_waits* w, int32_t tid) {
  size_t i = (uint32_t)tid * UINT32_C(2654435761) >> 8 & (SLOTS - 1);
  while (w->slots[i] && w->threads[w->slots[i] - 1].call.tid != tid)
    i = (i + 1) & (SLOTS - 1);
  return &w->slots[i];
}

static struct st_syscall_thread* thread_of(const struct st_syscall_waits* w,
                                           int32_t tid) {
  uint16_t index = *slot_of(w, tid);
  return index ? &w->threads[index - 1] : NULL;
}

/* Forgets the threads without a call: most of them have ended. */
static void forget_idle(struct st_syscall_waits* w) {
  size_t count = w->thread_count;
  w->thread_count = 0;
  memset(w->slots, 0, SLOTS * sizeof *w->slots);
  for (size_t i = 0; i < count; i++) {
    if (w->threads[i].state == IDLE)
      continue;
    uint16_t* slot = slot_of(w, w->threads[i].call.tid);
    w->threads[w->thread_count] = w->threads[i];
    *slot = (uint16_t)++w->thread_count;
  }
}

static struct st_syscall_thread* new_thread(struct st_syscall_waits* w,
                                            int32_t tid) {
  if (w->thread_count == ST_SYSCALL_MAX_THREADS)
    forget_idle(w);
  if (w->thread_count == ST_SYSCALL_MAX_THREADS) {
    w->dropped_threads++;
    return NULL;
  }
  uint16_t* slot = slot_of(w, tid);
  struct st_syscall_thread* thread = &w->threads[w->thread_count++];
  *slot = (uint16_t)w->thread_count;
  *thread = (struct st_syscall_thread){.call.tid = tid};
  return thread;
}

static void forget_open(struct st_syscall_waits* w) {
  for (size_t i = 0; i < w->thread_count; i++) {
    if (w->threads[i].state == OPEN)
      w->threads[i].state = IDLE;
  }
}

/* --- Calls --------------------------------------------------------------- */

/* Whether a call that begins with the event `e` uses the descriptor for which
 * the thread has waited in *call. */
static bool is_use(const struct st_syscall_waits* w,
                   const struct st_syscall_event* e,
                   const struct st_syscall* call) {
  bool is_one = call->arguments[1] == 1;
  uint8_t needed = is_one ? ST_SYSCALL_USES_FD : ST_SYSCALL_READS;
  return kind_of(w, e->number) & needed &&
         e->time - call->end < ST_SYSCALL_USE_NS;
}

/* Begins a call.  Returns whether something is reported: a new thread, or the call
 * that was kept back. */
static bool enter(struct st_syscall_waits* w, const struct st_syscall_event* e,
                  struct st_syscall* call) {
  struct st_syscall_thread* thread = thread_of(w, e->tid);
  bool is_new = !thread;
  if (is_new && !(thread = new_thread(w, e->tid)))
    return false;
  bool was_kept = thread->state == KEPT;
  if (was_kept) {
    *call = thread->call;
    if (is_use(w, e, call))
      call->used_fd = (int32_t)e->values[0];
  }
  thread->state = OPEN;
  thread->is_told = false;
  thread->call = (struct st_syscall){.begin = e->time,
                                     .arguments = {e->values[0], e->values[1]},
                                     .tid = e->tid,
                                     .number = e->number,
                                     .used_fd = -1};
  if (is_new) {
    *call = thread->call;
    call->number = ST_SYSCALL_NEW_THREAD;
  }
  return was_kept || is_new;
}

/* Ends a call.  Returns whether it is reported, and stores it in *call. */
static bool leave(struct st_syscall_waits* w, const struct st_syscall_event* e,
                  struct st_syscall* call) {
  struct st_syscall_thread* thread = thread_of(w, e->tid);
  if (!thread || thread->state != OPEN || thread->call.number != e->number)
    return false;
  uint8_t kind = kind_of(w, e->number);
  thread->call.end = e->time;
  thread->call.result = (int64_t)e->values[0];
  bool waited =
      kind & ST_SYSCALL_WAIT && e->time - thread->call.begin >= w->min_ns;
  bool is_kept = waited && kind & ST_SYSCALL_POLL && thread->call.result > 0;
  thread->state = is_kept ? KEPT : IDLE;
  *call = thread->call;
  return !is_kept && (waited || kind & ST_SYSCALL_TOLD);
}

bool st_syscall_waits_next(struct st_syscall_waits* w,
                           struct st_syscall* call) {
  while (w->next_event < w->sorted_count) {
    const struct st_syscall_event* e = &w->events[w->next_event++];
    if (e->type == LOSS)
      forget_open(w);
    else if (e->type == ENTER ? enter(w, e, call) : leave(w, e, call))
      return true;
  }
  return false;
}

static bool is_open(const struct st_syscall_waits* w,
                    const struct st_syscall_thread* thread) {
  return thread->state == OPEN &&
         kind_of(w, thread->call.number) & ST_SYSCALL_WAIT;
}

bool st_syscall_waits_open(struct st_syscall_waits* w, uint64_t now,
                           struct st_syscall* call) {
  while (w->next_open < w->thread_count) {
    struct st_syscall_thread* thread = &w->threads[w->next_open++];
    if (is_open(w, thread) && !thread->is_told &&
        thread->call.begin + w->min_ns <= now) {
      thread->is_told = true;
      *call = thread->call;
      return true;
    }
  }
  w->next_open = 0;
  return false;
}

bool st_syscall_waits_rest(struct st_syscall_waits* w,
                           struct st_syscall* call) {
  while (w->next_rest < w->thread_count) {
    struct st_syscall_thread* thread = &w->threads[w->next_rest++];
    bool is_told = thread->state == KEPT || is_open(w, thread);
    thread->state = IDLE;
    *call = thread->call;
    if (is_told)
      return true;
  }
  return false;
}
