#include "probes/stack_reader.h"

#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
  WINDOW = 4096, /* At most the size of a page of memory. */
  /* If a frame is so near to the start of its page, the page has few of its
   * callers. */
  FEW_CALLERS = 1024,
  /* The size up to which a frame is read as a whole, for its state. */
  MAX_FRAME_BYTES = 1024,
  /* The number of bytes that are read of a thread state.  They contain all
   * members that a layout names. */
  THREAD_BYTES = 320,
  GENERATOR = 1, /* The owner of the frames of generators and coroutines. */
};

static bool read_own(void* self, uint64_t address, void* to, size_t size) {
  (void)self;
  struct iovec local = {to, size};
  struct iovec remote = {(void*)(uintptr_t)address, size};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)size;
}

const struct st_memory st_own_memory = {.read = read_own};

bool st_own_memory_works(void) {
  volatile uint64_t from = 0x5742454C4C;
  uint64_t to = 0;
  return read_own(NULL, (uint64_t)(uintptr_t)&from, &to, sizeof to) &&
         to == from;
}

/* A window: a copy of the memory at [start, start + size). */
struct window {
  const struct st_memory* memory;
  uint64_t start;
  size_t size;
  uint8_t bytes[WINDOW];
};

static bool fetch(struct window* w, uint64_t start, size_t size) {
  w->start = start;
  w->size = w->memory->read(w->memory->self, start, w->bytes, size) ? size : 0;
  return w->size != 0;
}

/* Fetches a window that ends with a frame: most callers of a frame are at lower
 * addresses.  The page of the frame is mapped, the page before it may not be. */
static bool fetch_up_to(struct window* w, uint64_t address, size_t size) {
  uint64_t page = address - address % WINDOW, end = address + size;
  if (address - page < FEW_CALLERS && end >= WINDOW &&
      fetch(w, end - WINDOW, WINDOW))
    return true;
  uint64_t start = end - page > WINDOW ? end - WINDOW : page;
  return fetch(w, start, end - start);
}

/* Returns the bytes of a frame, from the source's copy or from the window. */
static const uint8_t* frame_bytes(struct window* w, uint64_t address,
                                  size_t size) {
  const struct st_memory* memory = w->memory;
  const uint8_t* copied =
      memory->view ? memory->view(memory->self, address, size) : NULL;
  if (copied)
    return copied;
  bool inside = address >= w->start && address - w->start + size <= w->size &&
                w->size >= size;
  if (!inside && !fetch_up_to(w, address, size))
    return NULL;
  return w->bytes + (address - w->start);
}

static uint64_t word_at(const uint8_t* bytes, size_t offset) {
  uint64_t word;
  memcpy(&word, bytes + offset, sizeof word);
  return word;
}

static uint64_t word_if(const uint8_t* bytes, size_t offset) {
  return offset ? word_at(bytes, offset) : 0;
}

static bool is_pointer(uint64_t word) {
  return word >= WINDOW && word % sizeof(uint64_t) == 0;
}

/* Returns the size of a frame's part that is read.  A frame in the stack ends
 * where the frame begins that it has called. */
static size_t frame_size(const struct st_stack_layout* layout, uint64_t address,
                         uint64_t called) {
  bool whole = layout->frame_state && called >= address + ST_FRAME_BYTES &&
               called - address <= MAX_FRAME_BYTES;
  return whole ? called - address : ST_FRAME_BYTES;
}

static uint64_t hash(const uint8_t* bytes, size_t size) {
  uint64_t h = size;
  for (size_t i = 0; i + sizeof h <= size; i += sizeof h) {
    h = (h ^ word_at(bytes, i)) * 0x9E3779B97F4A7C15;
    h ^= h >> 32;
  }
  return h;
}

/* Returns whether a frame runs: while it does, the top of its stack is -1 as an
 * index, 0 as an address.  A Python call by a running frame first stores the
 * top. */
static bool runs(const struct st_stack_layout* layout, const uint8_t* frame) {
  const uint8_t* top = frame + layout->frame_stack_top;
  int32_t index;
  memcpy(&index, top, sizeof index);
  return layout->frame_stack_top &&
         (layout->has_stack_index ? index == -1 : !word_at(top, 0));
}

/* Reads a thread state.  `frame` becomes the address of the control frame where
 * there are control frames. */
static bool read_state(const struct st_stack_layout* layout,
                       const struct st_memory* memory, uint64_t address,
                       struct st_stack_thread* thread) {
  uint8_t bytes[THREAD_BYTES];
  if (!is_pointer(address) ||
      !memory->read(memory->self, address, bytes, sizeof bytes))
    return false;
  *thread = (struct st_stack_thread){
      .previous = word_at(bytes, layout->thread_previous),
      .next = word_at(bytes, layout->thread_next),
      .id = word_at(bytes, layout->thread_id),
      .native_id = word_at(bytes, layout->thread_native_id),
      .frame = word_at(bytes, layout->thread_frame)};
  return true;
}

bool st_stack_read_thread_id(const struct st_stack_layout* layout,
                             const struct st_memory* memory, uint64_t address,
                             struct st_stack_thread* thread) {
  bool mapped = read_state(layout, memory, address, thread);
  thread->frame = 0;
  return mapped;
}

bool st_stack_read_thread(const struct st_stack_layout* layout,
                          const struct st_memory* memory, uint64_t address,
                          struct st_stack_thread* thread) {
  if (!read_state(layout, memory, address, thread))
    return false;
  if (!layout->has_control_frame)
    return true;
  return is_pointer(thread->frame) &&
         memory->read(memory->self, thread->frame + layout->control_frame,
                      &thread->frame, sizeof thread->frame);
}

bool st_stack_read_instruction(const struct st_stack_layout* layout,
                               const struct st_memory* memory,
                               const struct st_stack_frame* frame,
                               uint64_t* instruction) {
  return memory->read(memory->self, frame->address + layout->frame_instruction,
                      instruction, sizeof *instruction);
}

/* Returns whether the walk is at an earlier frame again: at one that it had
 * reached after a power of two of steps. */
static bool is_circle(uint64_t address, int steps, uint64_t* earlier) {
  if (address == *earlier)
    return true;
  if ((steps & (steps - 1)) == 0)
    *earlier = address;
  return false;
}

int st_stack_read(const struct st_stack_layout* layout,
                  const struct st_memory* memory,
                  const struct st_stack_thread* thread,
                  struct st_stack_frame* frames) {
  struct window w; /* Its bytes are not initialised: they are many. */
  w.memory = memory;
  w.start = w.size = 0;
  uint64_t address = thread->frame, called = 0, earlier = 0;
  int depth = 0;
  for (int steps = 0; address; steps++) {
    if (is_circle(address, steps, &earlier))
      return ST_STACK_TORN;
    if (depth == ST_STACK_MAX_DEPTH || steps == 2 * ST_STACK_MAX_DEPTH)
      return depth == ST_STACK_MAX_DEPTH ? ST_STACK_TOO_DEEP : ST_STACK_TORN;
    size_t size = frame_size(layout, address, called);
    const uint8_t* bytes =
        is_pointer(address) ? frame_bytes(&w, address, size) : NULL;
    if (!bytes)
      return ST_STACK_TORN;
    uint64_t previous = word_at(bytes, layout->frame_previous);
    uint64_t code = word_at(bytes, layout->frame_code) & ~layout->code_tag;
    uint8_t owner = bytes[layout->frame_owner];
    if (owner > layout->last_owner)
      return ST_STACK_TORN;
    if (owner < layout->first_foreign_owner) {
      bool has_callee = depth && !frames[depth - 1].is_by_c;
      bool is_suspended = owner == GENERATOR && !previous;
      if (!is_pointer(code) || is_suspended ||
          (has_callee && runs(layout, bytes)))
        return ST_STACK_TORN;
      uint16_t state = called ? layout->frame_state : 0;
      frames[depth++] = (struct st_stack_frame){
          .address = address,
          .code = code,
          .globals = word_if(bytes, layout->frame_globals),
          .object = word_if(bytes, layout->frame_object),
          .state = state ? hash(bytes + state, size - state) : 0,
          .instruction = word_at(bytes, layout->frame_instruction),
          .is_by_c = !previous ||
                     (layout->frame_is_entry && bytes[layout->frame_is_entry])};
    } else if (depth) {
      frames[depth - 1].is_by_c = true;
    }
    called = address;
    address = address == thread->stop ? 0 : previous;
  }
  return depth;
}
