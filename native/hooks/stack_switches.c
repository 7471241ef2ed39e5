#include "hooks/stack_switches.h"

#include "hooks/python_layout.h"

static bool is_call(const struct st_shown_frame* f,
                    const struct st_stack_frame* frame) {
  return f->address == frame->address &&
         (uint64_t)(uintptr_t)f->record->code == frame->code;
}

static bool is_open(const struct st_shown_calls* s,
                    const struct st_stack_frame* frame) {
  const struct st_code_record* r = st_code_record_find(frame->code);
  for (uint32_t i = s->depth; r && r->open && i-- > 0;) {
    if (is_call(&s->frames[i], frame))
      return true;
  }
  return false;
}

const struct st_suspended_call* st_switches_find(
    const struct st_shown_calls* s, const struct st_stack_frame* frame) {
  const struct st_suspended_call* call =
      st_suspended_find(&s->suspended, frame->address);
  if (!call)
    return NULL;
  const struct st_code_record* r = call->of;
  return (uint64_t)(uintptr_t)r->code == frame->code ? call : NULL;
}

/* Whether the calls that are known to be open are the present ones, up to the
 * frame `f`. */
static bool is_same_stack(const struct st_shown_calls* s,
                          struct st_stack_frame f) {
  if (!s->depth && !s->suspended.count)
    return true;
  for (int i = 0; f.address && i < ST_STACK_MAX_DEPTH; i++) {
    if (s->depth && is_call(&s->frames[s->depth - 1], &f))
      return true;
    if (st_switches_find(s, &f))
      return false;
    f = st_python_caller(f);
  }
  return !s->depth;
}

static bool has_open_call(const struct st_shown_calls* s,
                          struct st_stack_frame f) {
  for (int i = 0; f.address && i < ST_STACK_MAX_DEPTH; i++) {
    if (is_open(s, &f))
      return true;
    f = st_python_caller(f);
  }
  return false;
}

static void keep(struct st_shown_calls* s, const struct st_shown_frame* f) {
  const struct st_suspended_call call = {.address = f->address,
                                         .of = f->record,
                                         .except = f->except,
                                         .found = f->found,
                                         .sampled = f->sampled};
  if (!st_suspended_add(&s->suspended, &call))
    st_hooks.counts.not_continued++;
}

/* The thread has left the stack of all its open calls. */
static void leave(struct st_shown_calls* s, uint64_t until, uint64_t limit) {
  if (!s->depth)
    return;
  s->suspended.last = s->frames[0].address;
  for (uint32_t i = 0; i < s->depth; i++)
    keep(s, &s->frames[i]);
  st_shown_cut_c_calls(s, 0);
  while (s->depth) {
    uint64_t end = st_shown_end_innermost(s, until, limit);
    s->left_at = end > s->left_at ? end : s->left_at;
  }
  if (s->step.begin && !s->step.end)
    s->step.end = s->left_at > s->step.begin ? s->left_at : s->step.begin + 1;
}

void st_switches_leave_for(struct st_shown_calls* s,
                           const struct st_stack_frame* stack, int depth,
                           uint64_t until, uint64_t limit) {
  for (int i = 0; i < depth; i++) {
    if (is_open(s, &stack[i]))
      return;
  }
  leave(s, until, limit);
}

void st_switches_continue(struct st_shown_calls* s, struct st_shown_frame* f,
                          const struct st_suspended_call* call) {
  f->resumed = true;
  f->found = call->found;
  f->except = call->except;
  f->confirmed = atomic_load(&f->record->state) == ST_CODE_ON;
  f->sampled = call->sampled || !f->confirmed;
  s->sampled -= !f->sampled;
  st_suspended_remove(&s->suspended, f->address);
}

/* Copies the thread's stack from the frame `f` on.  Returns its depth, and sets
 * *suspended to the number of its suspended calls. */
static int read_stack(const struct st_shown_calls* s, struct st_stack_frame f,
                      struct st_stack_frame* stack, uint32_t* suspended) {
  int depth = 0;
  *suspended = 0;
  while (f.address && depth < ST_STACK_MAX_DEPTH) {
    *suspended += st_switches_find(s, &f) != NULL;
    stack[depth++] = f;
    f = st_python_caller(f);
  }
  return depth;
}

/* Begins a part of a suspended call, at `index`. */
static void resume(struct st_shown_calls* s, uint32_t index,
                   const struct st_suspended_call* call, uint64_t begin) {
  struct st_shown_frame* f = st_shown_insert(
      s, index, call->address, (struct st_code_record*)(uintptr_t)call->of);
  if (!f) {
    st_hooks.counts.not_continued++;
    st_suspended_remove(&s->suspended, call->address);
    return;
  }
  if (index + 1 < s->depth && f[1].begin < begin)
    begin = f[1].begin;
  if (index && f[-1].begin > begin)
    begin = f[-1].begin;
  f->begin = f->last = begin;
  f->samples = 1;
  f->cpu_ns = st_cpu_now(&s->cpu, s->native_id, s->now, ST_CPU_AGE_AT_BEGIN_NS);
  st_switches_continue(s, f, call);
}

/* Returns the begin of the outermost part, after the end of all others: another
 * thread may have written that one, and the trace does not keep the order of
 * events of two threads at one time.  If the last call of a stack has ended,
 * the thread goes on where it has come from. */
static uint64_t first_begin(const struct st_shown_calls* s, uint64_t now,
                            uint32_t count, bool goes_back) {
  uint64_t least = s->left_at > s->last_event ? s->left_at : s->last_event;
  return goes_back || now <= least + count ? least + 1 : now - count;
}

/* Begins the suspended calls of the present stack again.  No Python code runs
 * meanwhile. */
static void resume_present(struct st_shown_calls* s, struct st_stack_frame f,
                           uint64_t now, bool ended) {
  static struct st_stack_frame stack[ST_STACK_MAX_DEPTH];
  uint32_t count, index = 0;
  int depth = read_stack(s, f, stack, &count);
  uint64_t begin = 0;
  while (depth-- > 0) {
    const struct st_suspended_call* call = st_switches_find(s, &stack[depth]);
    if (index < s->depth && is_call(&s->frames[index], &stack[depth])) {
      index++;
    } else if (call) {
      if (!begin)
        begin = first_begin(s, now, count,
                            ended && call->address == s->suspended.last);
      uint32_t before = s->depth;
      resume(s, index, call, begin);
      index += s->depth - before;
      begin += begin < now;
    }
  }
}

void st_switches_follow(struct st_shown_calls* s, uint64_t now, bool entering) {
  struct st_stack_frame f = st_python_frame(PyThreadState_Get());
  if (entering) {
    st_suspended_remove(&s->suspended, f.address);
    f = st_python_caller(f);
  }
  if (is_same_stack(s, f))
    return;
  bool ended = !s->depth;
  if (!has_open_call(s, f)) {
    uint64_t until = st_shown_unchanged_until(s, now);
    leave(s, until > s->last_event ? until : s->last_event, now - 1);
  }
  if (s->suspended.count)
    resume_present(s, f, now, ended);
}
