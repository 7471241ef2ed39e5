/* Thread sample: reads the stack of one thread of another process, usually by
 * one system call.
 *
 *   place:   the addresses at which the last sample found the thread's data
 *   fetch:   frames outside the chunk | thread state | control frame |
 *            stack chunk | frame pointer again | stack chunk again
 *
 * The control frame exists in CPython 3.11 and 3.12 only.  Frames outside the
 * chunk are those of generators, of older chunks, and, up to 3.12, of calls
 * from C.  Those that the last sample didn't have are read by further system
 * calls.
 *
 * The thread runs during the copy.  The sample is torn, which is an error, if
 * the frame pointer was not the same before and after the chunk was copied, or
 * a frame is not the same in both copies of the chunk.  The instruction of the
 * innermost frame may differ.  That of a caller can't while its callee runs: if
 * it differs, the callee had returned, and the copies show what it has left.
 * The parts that are compared follow each other directly: each further part
 * gives the thread 0.3 us more to change.
 */
#pragma once

#include "probes/process_memory.h"

enum {
  ST_THREAD_STATE_BYTES = 320,
  /* The largest part of a stack chunk that is fetched at once. */
  ST_CHUNK_WINDOW = 16 << 10,
  /* The largest number of frames outside the chunk that are fetched at once. */
  ST_MAX_OUTSIDE = 8,
};

/* The addresses of a thread's data.  Only `state` must be correct: a sample
 * corrects the others. */
struct st_thread_place {
  uint64_t state;
  uint64_t native_id;
  uint64_t control;
  uint64_t chunk;
  /* The number of bytes of the chunk to fetch. */
  size_t chunk_bytes;
  int outside_count;
  uint64_t outside[ST_MAX_OUTSIDE];
  /* Whether the last stack was deeper than ST_STACK_MAX_DEPTH: its innermost
   * frames were read. */
  bool is_cut;
  /* Whether the thread has changed its stack during the last sample. */
  bool has_moved;
};

enum {
  /* The thread has ended, or its memory can't be read. */
  ST_THREAD_GONE = -3,
};

enum st_frame_kind {
  ST_FRAME_BY_PYTHON, /* A Python call that Python code has made. */
  ST_FRAME_BY_C,      /* A Python call that C code has made. */
  ST_FRAME_NATIVE,    /* A C call: see mixed_stack.h. */
};

/* A frame with the instruction that it executes. */
struct st_sampled_frame {
  uint64_t code, instruction;
  uint64_t kind; /* An st_frame_kind. */
};

/* Reads the stack of a thread, the innermost frame first.  `frames` has room
 * for ST_STACK_MAX_DEPTH.  Returns the number of frames, or a negative
 * ST_STACK_ or ST_THREAD_ error. */
int st_thread_sample(const struct st_stack_layout* layout,
                     struct st_process_memory* process,
                     struct st_thread_place* place,
                     struct st_sampled_frame* frames);
