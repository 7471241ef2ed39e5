#include "probes/thread_sample.h"

#include <string.h>

enum {
  POINTER_BYTES = 8,
  /* The window of a chunk ends this many bytes after a frame: room for more
   * calls. */
  GROWTH = 512,
  FIRST_WINDOW = 1024,
};

struct copies {
  uint8_t state[ST_THREAD_STATE_BYTES];
  uint8_t control[16];
  uint8_t outside[ST_MAX_OUTSIDE][ST_FRAME_BYTES];
  uint8_t chunks[2][ST_CHUNK_WINDOW];
  uint8_t pointer[POINTER_BYTES];
};

/* The source of a stack's frames, which notes those outside the chunk. */
struct frame_source {
  struct st_memory memory;
  const struct st_thread_place* place;
  int outside_count;
  uint64_t outside[ST_MAX_OUTSIDE];
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
  for (int i = 0; i < place->outside_count; i++)
    parts[count++] = (struct st_memory_part){place->outside[i], ST_FRAME_BYTES,
                                             copies->outside[i]};
  parts[count++] = (struct st_memory_part){place->state, sizeof copies->state,
                                           copies->state};
  if (layout->has_control_frame)
    parts[count++] = (struct st_memory_part){
        place->control, sizeof copies->control, copies->control};
  parts[count++] = (struct st_memory_part){place->chunk, place->chunk_bytes,
                                           copies->chunks[0]};
  parts[count++] = (struct st_memory_part){pointer_address(layout, place),
                                           POINTER_BYTES, copies->pointer};
  parts[count++] = (struct st_memory_part){place->chunk, place->chunk_bytes,
                                           copies->chunks[1]};
  return st_process_fetch(process, parts, count) == count;
}

/* Finds the addresses of a thread's data, by separate system calls.  Returns
 * false if the thread has ended. */
static bool find(const struct st_stack_layout* layout,
                 struct st_process_memory* process,
                 struct st_thread_place* place) {
  uint8_t state[ST_THREAD_STATE_BYTES];
  process->part_count = place->outside_count = 0;
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

static bool is_in_chunk(const struct st_thread_place* place, uint64_t address) {
  return address - place->chunk < place->chunk_bytes;
}

/* Returns whether a word of a frame is the same in both copies of the chunk, or
 * outside of them. */
static bool is_steady(const struct st_thread_place* place,
                      const struct copies* copies, uint64_t address) {
  uint64_t at = address - place->chunk;
  return !is_in_chunk(place, address + sizeof at - 1) ||
         word_of(copies->chunks[0], at) == word_of(copies->chunks[1], at);
}

static bool is_steady_frame(const struct st_stack_layout* layout,
                            const struct st_thread_place* place,
                            const struct copies* copies, uint64_t frame,
                            bool is_innermost) {
  return is_steady(place, copies, frame + layout->frame_code) &&
         is_steady(place, copies, frame + layout->frame_previous) &&
         (is_innermost ||
          is_steady(place, copies, frame + layout->frame_instruction));
}

static const uint8_t* view_frame(void* self, uint64_t address, size_t size) {
  struct frame_source* source = self;
  if (!is_in_chunk(source->place, address) &&
      source->outside_count < ST_MAX_OUTSIDE)
    source->outside[source->outside_count++] = address;
  return source->memory.view(source->memory.self, address, size);
}

static bool read_frame(void* self, uint64_t address, void* to, size_t size) {
  const struct frame_source* source = self;
  return source->memory.read(source->memory.self, address, to, size);
}

static int read_frames(const struct st_stack_layout* layout,
                       struct st_process_memory* process,
                       struct st_thread_place* place,
                       const struct copies* copies,
                       const struct st_stack_thread* thread,
                       struct st_sampled_frame* out) {
  struct st_stack_frame frames[ST_STACK_MAX_DEPTH];
  struct frame_source source;
  source.memory = st_process_source(process);
  source.place = place;
  source.outside_count = 0;
  struct st_memory memory = {read_frame, &source, view_frame};
  int depth = st_stack_read(layout, &memory, thread, frames);
  place->is_cut = depth == ST_STACK_TOO_DEEP;
  if (place->is_cut)
    depth = ST_STACK_MAX_DEPTH;
  for (int i = 0; i < depth; i++) {
    out[i].code = frames[i].code;
    out[i].instruction = frames[i].instruction;
    out[i].kind = frames[i].is_by_c ? ST_FRAME_BY_C : ST_FRAME_BY_PYTHON;
    if (!is_steady_frame(layout, place, copies, frames[i].address, i == 0))
      return ST_STACK_TORN;
  }
  place->outside_count = source.outside_count;
  memcpy(place->outside, source.outside,
         (size_t)source.outside_count * sizeof *source.outside);
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

static bool has_moved(const struct st_thread_place* place,
                      const struct copies* copies) {
  return memcmp(copies->chunks[0], copies->chunks[1], place->chunk_bytes) != 0;
}

int st_thread_sample(const struct st_stack_layout* layout,
                     struct st_process_memory* process,
                     struct st_thread_place* place,
                     struct st_sampled_frame* frames) {
  struct copies copies;
  place->has_moved = false;
  bool is_known = place->chunk_bytes &&
                  fetch(layout, process, place, &copies) &&
                  is_at(layout, place, &copies);
  int error = is_known ? 0 : relocate(layout, process, place, &copies);
  if (error)
    return error == ST_STACK_TORN && !place->chunk ? 0 : error;
  place->has_moved = has_moved(place, &copies);
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
