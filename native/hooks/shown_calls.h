/* Shown calls: the open calls of one thread that are, or may become, slices.
 *
 * A call is shown, as a slice, if it lasts at least as long as the threshold.
 * A shorter one is only counted, in its caller.  So the BEGIN of a call waits
 * until the call has lasted that long, and is then written with the time at
 * which the call began.  An enclosing call is never shorter than an inner one.
 *
 *   frames   [ main | load | parse ]     reported by events: exact times
 *                      `--- by look      found by looks (look.h), and inserted
 *                                        here by sightings.h
 *
 * A frame that a look found may end without an event.  It is closed when it
 * cannot be open any more: its caller returns, a call begins that is not inside
 * it, a look does not find it, or its function is called again at the same
 * address.  Its end is the last time at which it was certainly open (`last`),
 * so it overlaps neither the end of its caller nor the next call.  A frame that
 * only one look found is not shown, as it may have been many short calls.
 *
 * Threads: the thread that holds the GIL may change the frames of any thread.
 * That is correct because a thread handles each event completely before it
 * releases the GIL, and sightings are in the order of their times.  A thread
 * writes its own slices; another thread writes them to its track.
 */
#pragma once

#include "core/thread_list.h"
#include "hooks/code_records.h"
#include "hooks/tracer.h"

enum {
  /* After this number of short calls in a row a function is switched off. */
  ST_SHORT_CALLS = 100,
  ST_SHOWN_CALLS = 4096, /* The maximal depth of the shown calls of a thread. */
};

struct st_shown_frame {
  uint64_t address; /* The address of the interpreter's frame for this call. */
  struct st_code_record* record;
  uint64_t begin;
  /* The last time at which the call is known not to have returned yet. */
  uint64_t last;
  /* The time at which the last inner call of this call ended. */
  uint64_t child_end;
  /* The number of calls made by this call that are not shown. */
  uint64_t short_calls;
  uint64_t short_ns;
  uint64_t unsure_ns; /* How much earlier this call may have begun. */
  uint32_t mask, since, except;
  uint32_t looks; /* The number of looks that found this call. */
  bool by_look;   /* A look found this call, so it may end without an event. */
  /* A look was the first to find this call: it began without an event. */
  bool found;
  /* This frame is certainly one call, not several calls at the same address. */
  bool confirmed;
  bool written; /* The BEGIN of this call was written. */
};

/* The result of the last look at a thread.  The struct is never freed, but may
 * pass to another thread.  The look thread writes `thread_id` and `until` with
 * sequentially consistent stores, and clears `until` before it sets
 * `thread_id`: a thread that finds its own id there sees no `until` of an
 * earlier thread.  The thread itself writes `events`, relaxed, because it
 * orders nothing: a look that misses the last event treats the stack as
 * unchanged for one more period. */
struct st_looked_at {
  _Atomic uint64_t thread_id;
  /* The time until which the stack of the thread was unchanged. */
  _Atomic uint64_t until;
  /* The number of events of the thread; each event may outdate the last
   * sighting. */
  _Atomic uint64_t events;
};

struct st_shown_calls {
  struct st_thread_record thread;
  struct st_shown_frame* frames;
  uint32_t depth, capacity;
  /* The number of outermost frames whose BEGINs are written. */
  uint32_t begun;
  uint32_t by_look;
  uint32_t generation;
  uint64_t last_event; /* The time of the last event of this thread. */
  /* The time of the last merged sighting of this thread. */
  uint64_t last_look;
  uint64_t native_id;
  /* The result of the last look at this thread; NULL before the first
   * sighting. */
  struct st_looked_at* looked_at;
  /* The track of this thread, made when another thread first writes to it. */
  PyObject* track;
  /* The `raised` argument of st_shown_leave(), a borrowed reference. */
  PyObject* raised;
  /* Whether the thread is handling an event, perhaps waiting without the
   * GIL. */
  bool busy;
};

struct st_shown_counts {
  /* Three counts: slices, slices that looks found, and short calls. */
  uint64_t shown, found, counted;
};

extern _Thread_local struct st_shown_calls* st_thread_shown;
extern struct st_shown_counts st_shown_counts;

/* Returns the shown calls of the calling thread, made on first use.  Returns
 * NULL when out of memory. */
struct st_shown_calls* st_shown_get(void);
/* Returns the shown calls of a thread, made on first use.  Returns NULL when
 * out of memory. */
struct st_shown_calls* st_shown_of(uint64_t thread_id, uint64_t native_id);
/* Ends the shown calls of an ended thread, and frees them. */
void st_shown_gone(struct st_shown_calls* s);
void st_shown_watch_forks(void);

/* Adds the call that begins now at this frame to the shown calls. */
void st_shown_enter(struct st_shown_calls* s, uint64_t address,
                    struct st_code_record* record, uint64_t now);
/* Closes the call at this frame, because it ends.  `raised` is the type of the
 * exception that has left the call, or NULL.  Returns false if the call is not
 * among the shown calls. */
bool st_shown_leave(struct st_shown_calls* s, uint64_t address,
                    struct st_code_record* record, uint64_t now,
                    PyObject* raised);

/* Inserts a frame that a look found, at `index`.  Returns NULL if there is no
 * room for the frame. */
struct st_shown_frame* st_shown_insert(struct st_shown_calls* s, uint32_t index,
                                       uint64_t address,
                                       struct st_code_record* record);
/* After a look at the thread, updates `last` of the frames that looks have
 * found.  No time becomes later than `now`. */
void st_shown_refresh(struct st_shown_calls* s, uint64_t now);
/* Sets `last` of the frames that the last look found to `time`. */
void st_shown_extend(struct st_shown_calls* s, uint64_t time);
/* Closes all frames deeper than `depth`.  Each call ends at the time `last` of
 * its frame. */
void st_shown_cut(struct st_shown_calls* s, uint32_t depth);
/* Writes the BEGIN of each call that has lasted as long as the threshold. */
void st_shown_write_due(struct st_shown_calls* s, uint64_t now);
/* Ends all open calls of all threads, at the end of the recording. */
void st_shown_end_all(uint64_t now);

/* Switches a function off: the interpreter reports no further calls of its
 * code. */
void st_shown_switch_off(struct st_code_record* record);
