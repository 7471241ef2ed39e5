#include "probes/mixed_stack.h"

#include <string.h>

/* A stack in the making. */
struct mix {
  const struct st_sampled_frame* python;
  int depth, used; /* The Python calls, and how many of them have a place. */
  struct st_sampled_frame out[ST_STACK_MAX_DEPTH];
  int count;
};

static int count_loops(const struct st_c_call* calls, int count) {
  int loops = 0;
  for (int i = 0; i < count; i++)
    loops += calls[i].is_loop;
  return loops;
}

static int count_by_c(const struct st_sampled_frame* frames, int depth) {
  int calls = 0;
  for (int i = 0; i < depth; i++)
    calls += frames[i].kind == ST_FRAME_BY_C;
  return calls;
}

/* Adds the Python calls of one loop. */
static void add_python(struct mix* m) {
  bool is_last = false;
  while (m->used < m->depth && !is_last) {
    is_last = m->python[m->used].kind == ST_FRAME_BY_C;
    m->out[m->count++] = m->python[m->used++];
  }
}

static void add_native(struct mix* m, uint64_t function) {
  m->out[m->count++] = (struct st_sampled_frame){
      .code = function, .instruction = function, .kind = ST_FRAME_NATIVE};
}

/* Adds C calls, up to the outermost Python call.  `surplus` is the number of
 * loops without Python calls. */
static void add_calls(struct mix* m, const struct st_c_call* calls, int count,
                      int surplus) {
  for (int i = 0; i < count && m->used < m->depth; i++) {
    if (!calls[i].is_loop)
      add_native(m, calls[i].function);
    else if (surplus)
      surplus--;
    else
      add_python(m);
  }
}

int st_mixed_stack(struct st_sampled_frame* frames, int depth,
                   const struct st_c_call* calls, int count, bool is_complete,
                   bool* has_native) {
  int surplus = count_loops(calls, count) - count_by_c(frames, depth);
  *has_native = false;
  if (depth <= 0 || depth + count > ST_STACK_MAX_DEPTH ||
      (is_complete ? surplus < 0 : surplus > 0))
    return depth;
  struct mix m; /* Its frames are not initialised: they are many. */
  m.python = frames;
  m.depth = depth;
  m.used = m.count = 0;
  add_calls(&m, calls, count, is_complete ? surplus : 0);
  *has_native = m.count > m.used;
  while (m.used < depth)
    add_python(&m);
  memcpy(frames, m.out, (size_t)m.count * sizeof *frames);
  return m.count;
}
