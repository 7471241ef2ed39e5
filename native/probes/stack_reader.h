/* Stack reader: the Python frames of a thread, read from the outside.
 *
 * It reads another thread's frames while that thread runs: without the GIL,
 * without stopping the thread, and without trusting any byte.  Every access
 * goes through `st_memory`, which fails if nothing is mapped there.
 *
 *   thread state --(control frame)--> frame --previous--> frame --> ... --> 0
 *                                       |
 *                                       code object
 *
 * The frames of nested calls are adjacent in memory.  So a read copies up to 4
 * KiB that end with the wanted frame, which contain most of its callers, too: a
 * stack of ten frames takes one system call, one of fifty about four.
 *
 * Torn reads.  The thread may return and call during the read.  An impossible
 * stack (an unaligned pointer, a circle, an unknown owner, no memory, a caller
 * that runs while its callee does, a generator without a caller: it is suspended)
 * is refused as ST_STACK_TORN.  So is on CPython 3.11 each stack of a thread
 * whose outermost call is a generator's; only C code makes such a call, and later
 * versions have a frame of another owner around it.  A possible stack that mixes
 * frames of two moments cannot be detected here, so the caller has to confirm a
 * frame by a second read.  Depth and work are bounded.
 *
 * The offsets of one CPython version are a table; hooks/python_layout.c has the
 * table of the running interpreter.  This unit does not include Python.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The layout of one CPython version: the offsets, in bytes, of the members that
 * the reader uses. */
struct st_stack_layout {
  /* The offsets of the addresses of the thread states before and after a thread
   * state, in the list of all. */
  uint16_t thread_previous;
  uint16_t thread_next;
  /* The offset of the thread state's own number, which is never reused. */
  uint16_t thread_id;
  /* The offset of the kernel's thread id in a thread state. */
  uint16_t thread_native_id;
  /* The offset of the pointer to the frame, or to the control frame, in a
   * thread state. */
  uint16_t thread_frame;
  /* The offset of the pointer to the frame in a control frame. */
  uint16_t control_frame;
  /* Whether this CPython version has control frames, as 3.11 and 3.12 have. */
  bool has_control_frame;
  uint16_t frame_code;
  uint16_t frame_previous;
  uint16_t frame_owner;
  uint16_t frame_instruction;
  /* The offset of the pointer to the globals; 0 if they are not wanted. */
  uint16_t frame_globals;
  /* The offset of the pointer to the frame object; 0 if it is not wanted. */
  uint16_t frame_object;
  /* The offset from which on a frame does not change while it calls another
   * one; 0 if `state` is not wanted. */
  uint16_t frame_state;
  /* The offset of the byte that says whether C code has made the call; 0 if
   * this CPython version has a frame of another owner there instead. */
  uint16_t frame_is_entry;
  /* The offset of the top of the frame's stack; 0 if it is not known.  The
   * interpreter stores the top only while the frame does not run. */
  uint16_t frame_stack_top;
  /* Whether the top is an index, of 4 bytes, as up to 3.13.  Since 3.14 it is an
   * address. */
  bool has_stack_index;
  /* The offset, in a thread state, of the address of the current stack chunk:
   * the memory in which the frames of nested calls are adjacent.  Only samplers
   * of other processes use it (thread_sample.h). */
  uint16_t thread_chunk;
  /* A frame whose owner is this number or a greater one is no Python call. */
  uint8_t first_foreign_owner;
  uint8_t last_owner; /* The greatest valid number of a frame's owner. */
  /* The bits of the code pointer that are not part of the address. */
  uint64_t code_tag;
};

/* A source of memory.  `read` copies `size` bytes from an address.  It returns
 * false if some of these bytes are not mapped.  `view` returns these bytes in a
 * copy that the source already has, or NULL; `view` itself may be NULL. */
struct st_memory {
  bool (*read)(void* self, uint64_t address, void* to, size_t size);
  void* self;
  const uint8_t* (*view)(void* self, uint64_t address, size_t size);
};

/* A source that reads this process's own memory, by process_vm_readv. */
extern const struct st_memory st_own_memory;
/* Returns whether the system allows st_own_memory. */
bool st_own_memory_works(void);

struct st_stack_thread {
  uint64_t previous, next, id, native_id, frame;
  /* The address of the last frame to read; 0 for all frames. */
  uint64_t stop;
};

/* A frame of a thread.  Its address identifies the call: two open calls never
 * have the same address. */
struct st_stack_frame {
  uint64_t address, code;
  uint64_t globals; /* 0 if the layout does not name the globals. */
  /* The frame object, which exists only if something has asked for it.  A call
   * never changes its frame object. */
  uint64_t object;
  /* A hash of the frame's instruction, variables and stack: they change only
   * while the frame itself runs.  0 in the innermost frame, and if the layout
   * does not say where they begin. */
  uint64_t state;
  uint64_t instruction; /* The address of the instruction that it executes. */
  /* Whether C code has made the call, which the interpreter's loop was called
   * for. */
  bool is_by_c;
};

enum {
  /* The number of bytes that are read of a frame.  They contain all members
   * that a layout names. */
  ST_FRAME_BYTES = 96,
  ST_STACK_MAX_DEPTH = 1024,
  ST_STACK_TORN = -1,
  ST_STACK_TOO_DEEP = -2,
};

/* Reads a thread state.  Returns false if the thread state is not in mapped
 * memory. */
bool st_stack_read_thread(const struct st_stack_layout* layout,
                          const struct st_memory* memory, uint64_t address,
                          struct st_stack_thread* thread);

/* Does the same without the frame, which is 0 in the result: cheaper, for a
 * thread whose stack may be known already. */
bool st_stack_read_thread_id(const struct st_stack_layout* layout,
                             const struct st_memory* memory, uint64_t address,
                             struct st_stack_thread* thread);

/* Reads the address of the instruction that a frame executes. */
bool st_stack_read_instruction(const struct st_stack_layout* layout,
                               const struct st_memory* memory,
                               const struct st_stack_frame* frame,
                               uint64_t* instruction);

/* Reads the frames of a thread into `frames`, the innermost first.  `frames`
 * has room for ST_STACK_MAX_DEPTH.  Returns the number of frames, or a negative
 * ST_STACK_ error.  With ST_STACK_TOO_DEEP, `frames` is full: it has the
 * innermost ones. */
int st_stack_read(const struct st_stack_layout* layout,
                  const struct st_memory* memory,
                  const struct st_stack_thread* thread,
                  struct st_stack_frame* frames);
