/* Stack reader: the Python frames of a thread, read from the outside.
 *
 * Reads another thread's frames while that thread runs: without the GIL, without
 * stopping it, and without trusting a byte.  Every access goes through
 * `st_memory`, which fails where nothing is mapped.
 *
 *   thread state --(control frame)--> frame --previous--> frame --> ... --> 0
 *                                       |
 *                                       code object
 *
 * Calls lie one above the other in memory, so a read fetches the 4 KiB that end
 * with the frame that is wanted, and most of its callers come along: some four
 * system calls for a stack of fifty frames.
 *
 * Torn reads.  The thread may return and call while it is read.  What looks
 * impossible (an unaligned or repeated pointer, an unknown owner, no memory) is
 * refused as ST_STACK_TORN; what is possible but mixed from two moments can't be
 * told here, so a frame that was read is a hint that the caller confirms by a
 * second read.  Depth is bounded, and so is the work.
 *
 * The offsets of one CPython version are a table (hooks/python_layout.c fills
 * the one of the running interpreter).  Nothing here includes Python.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Offsets in bytes. */
struct st_stack_layout {
  uint16_t thread_next;      /* thread state: the next one of the interpreter */
  uint16_t thread_id;        /*   number, never used again */
  uint16_t thread_native_id; /*   the kernel's tid */
  uint16_t thread_frame;     /*   its frame, or its control frame */
  uint16_t control_frame;    /* in the control frame: the frame */
  bool has_control_frame;    /* 3.11 and 3.12 */
  uint16_t frame_code;
  uint16_t frame_previous;
  uint16_t frame_owner;
  uint8_t first_foreign_owner; /* owners from here on are no Python calls */
  uint8_t last_owner;          /* what is above is no frame */
  uint64_t code_tag; /* bits of the pointer to the code, not address */
};

/* Copies `size` bytes from an address; false if not all of them are there. */
struct st_memory {
  bool (*read)(void* self, uint64_t address, void* to, size_t size);
  void* self;
};

/* This process's own memory, by process_vm_readv. */
extern const struct st_memory st_own_memory;
/* False where the system forbids that. */
bool st_own_memory_works(void);

struct st_stack_thread {
  uint64_t next, id, native_id, frame;
};

/* A call: two calls at the same time never have the same address. */
struct st_stack_frame {
  uint64_t address, code;
};

enum {
  ST_STACK_MAX_DEPTH = 1024,
  ST_STACK_TORN = -1,
  ST_STACK_TOO_DEEP = -2,
};

/* Reads a thread state.  False: it isn't there. */
bool st_stack_read_thread(const struct st_stack_layout* layout,
                          const struct st_memory* memory, uint64_t address,
                          struct st_stack_thread* thread);

/* Reads the frames of a thread, the innermost first, into `frames`, which has
 * room for ST_STACK_MAX_DEPTH.  Returns their number, or ST_STACK_*. */
int st_stack_read(const struct st_stack_layout* layout,
                  const struct st_memory* memory,
                  const struct st_stack_thread* thread,
                  struct st_stack_frame* frames);
