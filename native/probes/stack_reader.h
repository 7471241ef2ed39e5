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
 * The frames of nested calls are adjacent in memory.  So a read copies the 4
 * KiB that end with the wanted frame, which contain most of its callers, too: a
 * stack of fifty frames takes about four system calls.
 *
 * Torn reads.  The thread may return and call during the read.  An impossible
 * stack (an unaligned or repeated pointer, an unknown owner, no memory) is
 * refused as ST_STACK_TORN.  A possible stack that mixes frames of two moments
 * cannot be detected here, so the caller has to confirm a frame by a second
 * read.  Depth and work are bounded.
 *
 * The offsets of one CPython version are a table; hooks/python_layout.c has the
 * table of the running interpreter.  This unit does not include Python.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The offsets, in bytes, of the members that the reader uses. */
struct st_stack_layout {
  uint16_t thread_next;      /* In a thread state: the next thread state. */
  uint16_t thread_id;        /* In a thread state: its number, never reused. */
  uint16_t thread_native_id; /* In a thread state: the kernel's tid. */
  uint16_t thread_frame;  /* In a thread state: the frame or control frame. */
  uint16_t control_frame; /* In a control frame: the frame. */
  /* Whether the version has control frames, as 3.11 and 3.12. */
  bool has_control_frame;
  uint16_t frame_code;
  uint16_t frame_previous;
  uint16_t frame_owner;
  /* Frames with this owner or a greater one are no Python calls. */
  uint8_t first_foreign_owner;
  uint8_t last_owner; /* The greatest valid owner of a frame. */
  uint64_t code_tag;  /* Bits of the pointer to the code that are no address. */
};

/* A source of memory.  `read` copies `size` bytes from an address; returns
 * false if not all of them are mapped. */
struct st_memory {
  bool (*read)(void* self, uint64_t address, void* to, size_t size);
  void* self;
};

/* Reads this process's own memory, by process_vm_readv. */
extern const struct st_memory st_own_memory;
/* Returns whether the system allows st_own_memory. */
bool st_own_memory_works(void);

struct st_stack_thread {
  uint64_t next, id, native_id, frame;
};

/* A frame identifies a call: two open calls never have the same address. */
struct st_stack_frame {
  uint64_t address, code;
};

enum {
  ST_STACK_MAX_DEPTH = 1024,
  ST_STACK_TORN = -1,
  ST_STACK_TOO_DEEP = -2,
};

/* Reads a thread state.  Returns false if it is not in memory. */
bool st_stack_read_thread(const struct st_stack_layout* layout,
                          const struct st_memory* memory, uint64_t address,
                          struct st_stack_thread* thread);

/* Reads the frames of a thread, the innermost first, into `frames`, which has
 * room for ST_STACK_MAX_DEPTH.  Returns their number, or a negative ST_STACK_
 * error. */
int st_stack_read(const struct st_stack_layout* layout,
                  const struct st_memory* memory,
                  const struct st_stack_thread* thread,
                  struct st_stack_frame* frames);
