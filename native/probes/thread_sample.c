#include "probes/thread_sample.h"

#include <string.h>

enum {
  POINTER_BYTES = 8,
  /* The window of a chunk ends this many bytes after a frame: room for more
   * calls. */
  GROWTH = 2048,
  FIRST_WINDOW = 4096,
};

struct copies {
  uint8_t state[ST_THREAD_STATE_BYTES];
  uint8_t control[16];
  uint8_t chunk[ST_CHUNK_WINDOW];
  uint8_t pointer[POINTER_BYTES];
  uint8_t chunk_again[ST_CHUNK_WINDOW];
};

static uint64_t word_of(const uint8_t* bytes, size_t offset) {
  uint64_t word;
  memcpy(&word, bytes + offset, sizeof word);
  return word;
}

/* Returns the address of the pointer to the innermost frame. */
static uint64_t pointer_address(const struct st_stack_layout* layout,
                                const struct st_thread_place* place) {
  return layout->has_control_frame ? place->control + layout->control_frame
                                   : place->state + layout->thread_frame;
}

/* Copies the memory that a sample needs.  Returns whether all of it was
 * copied. */
static bool fetch(const struct st_stack_layout* layout,
                  struct st_process_memory* process,
                  const struct st_thread_place* place, struct copies* copies) {
  struct st_memory_part parts[ST_PROCESS_MAX_PARTS];
  int count = 0;
  parts[count++] = (struct st_memory_part){place->state, sizeof copies->state,
                                           copies->state};
  if (layout->has_control_frame)
    parts[count++] = (struct st_memory_part){
        place->control, sizeof copies->control, copies->control};
  parts[count++] =
      (struct st_memory_part){place->chunk, place->chunk_bytes, copies->chunk};
  parts[count++] = (struct st_memory_part){pointer_address(layout, place),
                                           POINTER_BYTES, copies->pointer};
  parts[count++] = (struct st_memory_part){place->chunk, place->chunk_bytes,
                                           copies->chunk_again};
  return st_process_fetch(process, parts, count) == count;
}

/* Finds the addresses of a thread's data, by separate system calls.  Returns
 * false if the thread has ended. */
static bool find(const struct st_stack_layout* layout,
                 struct st_process_memory* process,
                 struct st_thread_place* place) {
  uint8_t state[ST_THREAD_STATE_BYTES];
  process->part_count = 0;
  if (!st_process_read(process->pid, place->state, state, sizeof state))
    return false;
  place->native_id = word_of(state, layout->thread_native_id);
  place->control = word_of(state, layout->thread_frame);
  uint64_t chunk = word_of(state, layout->thread_chunk);
  if (chunk != place->chunk || !place->chunk_bytes)
    place->chunk_bytes = FIRST_WINDOW;
  place->chunk = chunk;
  return true;
}

/* Enlarges the window, up to the size of the chunk, so that it contains the
 * frame and GROWTH more bytes. */
static void grow(struct st_process_memory* process,
                 struct st_thread_place* place, uint64_t frame) {
  uint64_t chunk_size;
  if (frame < place->chunk || frame - place->chunk >= ST_CHUNK_WINDOW - GROWTH)
    return;
  size_t wanted = (size_t)(frame - place->chunk) + GROWTH;
  if (wanted > place->chunk_bytes &&
      st_process_read(process->pid, place->chunk + 8, &chunk_size, 8))
    place->chunk_bytes = wanted < chunk_size ? wanted : (size_t)chunk_size;
  if (place->chunk_bytes > ST_CHUNK_WINDOW)
    place->chunk_bytes = ST_CHUNK_WINDOW;
}

/* Returns whether a frame is the same in both copies of the chunk, or outside
 * of them. */
static bool is_steady(const struct st_stack_layout* layout,
                      const struct st_thread_place* place,
                      const struct copies* copies, uint64_t frame) {
  uint64_t at = frame - place->chunk;
  uint64_t code = at + layout->frame_code, back = at + layout->frame_previous;
  if (at >= place->chunk_bytes || code + 8 > place->chunk_bytes ||
      back + 8 > place->chunk_bytes)
    return true;
  return word_of(copies->chunk, code) == word_of(copies->chunk_again, code) &&
         word_of(copies->chunk, back) == word_of(copies->chunk_again, back);
}

static int read_frames(const struct st_stack_layout* layout,
                       struct st_process_memory* process,
                       const struct st_thread_place* place,
                       const struct copies* copies,
                       const struct st_stack_thread* thread,
                       struct st_sampled_frame* out) {
  struct st_stack_frame frames[ST_STACK_MAX_DEPTH];
  struct st_memory source = st_process_source(process);
  int depth = st_stack_read(layout, &source, thread, frames);
  for (int i = 0; i < depth; i++) {
    out[i].code = frames[i].code;
    if (!is_steady(layout, place, copies, frames[i].address) ||
        !st_stack_read_instruction(layout, &source, &frames[i],
                                   &out[i].instruction))
      return ST_STACK_TORN;
  }
  return depth;
}

/* Returns whether the copies belong to the thread that `place` describes. */
static bool is_at(const struct st_stack_layout* layout,
                  const struct st_thread_place* place,
                  const struct copies* copies) {
  return word_of(copies->state, layout->thread_native_id) == place->native_id &&
         word_of(copies->state, layout->thread_chunk) == place->chunk &&
         (!layout->has_control_frame ||
          word_of(copies->state, layout->thread_frame) == place->control);
}

/* Finds and copies the data of a thread whose `place` is not correct any more.
 * Returns 0 or an error. */
static int relocate(const struct st_stack_layout* layout,
                    struct st_process_memory* process,
                    struct st_thread_place* place, struct copies* copies) {
  if (!find(layout, process, place))
    return ST_THREAD_GONE;
  bool is_whole =
      fetch(layout, process, place, copies) && is_at(layout, place, copies);
  return is_whole ? 0 : ST_STACK_TORN;
}

int st_thread_sample(const struct st_stack_layout* layout,
                     struct st_process_memory* process,
                     struct st_thread_place* place,
                     struct st_sampled_frame* frames) {
  struct copies copies;
  bool is_known = place->chunk_bytes &&
                  fetch(layout, process, place, &copies) &&
                  is_at(layout, place, &copies);
  int error = is_known ? 0 : relocate(layout, process, place, &copies);
  if (error)
    return error == ST_STACK_TORN && !place->chunk ? 0 : error;
  struct st_stack_thread thread = {
      .frame = layout->has_control_frame
                   ? word_of(copies.control, layout->control_frame)
                   : word_of(copies.state, layout->thread_frame)};
  if (thread.frame != word_of(copies.pointer, 0))
    return ST_STACK_TORN;
  int depth = read_frames(layout, process, place, &copies, &thread, frames);
  grow(process, place, thread.frame);
  return depth;
}
