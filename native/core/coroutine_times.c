#include "coroutine_times.h"

#include <stdlib.h>

#include "identity_cache.h"

static struct st_coroutine_slot* place(const struct st_coroutine_times* t,
                                       uint64_t frame) {
  uint32_t hash = st_identity_hash((const void*)(uintptr_t)frame);
  return &t->slots[hash & (ST_COROUTINE_SLOTS - 1)];
}

/* Returns the slot of a call; NULL if it has none. */
static struct st_coroutine_slot* find(const struct st_coroutine_times* t,
                                      uint64_t frame, const void* code) {
  struct st_coroutine_slot* s = t->slots ? place(t, frame) : NULL;
  return s && s->frame == frame && s->code == code ? s : NULL;
}

/* Returns the slot of a call, which may take that of another one; NULL if
 * nothing is noted. */
static struct st_coroutine_slot* get(struct st_coroutine_times* t,
                                     uint64_t frame, const void* code) {
  if (!t->slots)
    return NULL;
  struct st_coroutine_slot* s = place(t, frame);
  if (s->frame != frame || s->code != code)
    *s = (struct st_coroutine_slot){.frame = frame, .code = code};
  return s;
}

bool st_coroutine_times_init(struct st_coroutine_times* t) {
  t->slots = calloc(ST_COROUTINE_SLOTS, sizeof *t->slots);
  return t->slots != NULL;
}

void st_coroutine_times_destroy(struct st_coroutine_times* t) {
  free(t->slots);
  t->slots = NULL;
}

void st_coroutine_began(struct st_coroutine_times* t, uint64_t frame,
                        const void* code, uint64_t time) {
  struct st_coroutine_slot* s = get(t, frame, code);
  if (!s)
    return;
  s->began = time;
  s->returned = false;
}

void st_coroutine_continues(struct st_coroutine_times* t, uint64_t frame,
                            const void* code, uint64_t time) {
  struct st_coroutine_slot* s = find(t, frame, code);
  if (s && s->returned)
    st_coroutine_began(t, frame, code, time);
}

void st_coroutine_seen(struct st_coroutine_times* t, uint64_t frame,
                       const void* code, uint64_t first, uint64_t unsure_ns,
                       uint64_t last) {
  struct st_coroutine_slot* s = get(t, frame, code);
  if (!s)
    return;
  if (first) {
    s->first = first;
    s->unsure_ns = unsure_ns;
  }
  s->last = last;
}

void st_coroutine_ended(struct st_coroutine_times* t, uint64_t frame,
                        const void* code, uint64_t time) {
  struct st_coroutine_slot* s = find(t, frame, code);
  if (!s)
    return;
  s->returned = true;
  if (!s->ended)
    s->ended = time;
}

void st_coroutine_watch(struct st_coroutine_times* t, uint64_t frame,
                        const void* code) {
  struct st_coroutine_slot* s = get(t, frame, code);
  if (s)
    s->ended = 0;
}

uint64_t st_coroutine_begin(const struct st_coroutine_times* t, uint64_t frame,
                            const void* code, uint64_t after, uint64_t before,
                            uint64_t* unsure_ns) {
  const struct st_coroutine_slot* s = find(t, frame, code);
  *unsure_ns = 0;
  if (s && s->began >= after && s->began <= before)
    return s->began;
  if (!s || s->first < after || s->first > before)
    return 0;
  uint64_t most = s->first - after;
  *unsure_ns = s->unsure_ns < most ? s->unsure_ns : most;
  return s->first;
}

/* Whether samples have last seen a call that began after this time.  A call that
 * a task resumes begins its step with the task's. */
static bool began_after(const struct st_coroutine_slot* s, uint64_t time) {
  return s->began > time || s->first > time + s->unsure_ns;
}

uint64_t st_coroutine_end(const struct st_coroutine_times* t, uint64_t frame,
                          const void* code, uint64_t after, uint64_t before,
                          uint64_t* unsure_ns) {
  const struct st_coroutine_slot* s = find(t, frame, code);
  *unsure_ns = 0;
  if (s && s->ended > after && s->ended <= before)
    return s->ended;
  if (!s || s->last <= after || s->last > before || began_after(s, after))
    return 0;
  *unsure_ns = before - s->last;
  return s->last;
}
